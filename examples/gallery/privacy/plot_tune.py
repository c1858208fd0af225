"""
How do I tune parameters without leaking data?
==============================================

With :class:`~sktensor_dp.PrivateSearchCV`. It tries candidates, scores
them on held-out rows with noise, and shows the best one only. The whole
search costs the epsilon that you name.
"""

# %%
# Why a grid search leaks
# -----------------------
#
# Each candidate is a fit that reads the data. The scores read them too,
# and so does the choice: a single person can decide which candidate
# wins. **Epsilon** limits what a result tells about one person. A usual
# grid search has no such limit at all.
#
# Something to tune
# -----------------
#
# Samples of three clusters. How many clusters there are, and how far
# out samples may lie (``data_norm``), are to be found.

import numpy as np

rng = np.random.default_rng(0)
X = (
    rng.standard_normal((40_000, 5))
    + 4 * np.eye(3, 5)[rng.integers(3, size=40_000)]
)

# %%
# The search
# ----------
#
# How many candidates are tried is drawn at random and stays a secret:
# thirty on average here. Because it is a secret, thirty trials cost
# much less than thirty fits. A score is the mean of a number for each
# row, here the logarithm of its probability density. ``score_bounds``
# says in which range these numbers are counted. Choose it tightly, and
# from what you know rather than from the data.

from sktensor_dp import PrivateGaussianMixture, PrivateSearchCV

candidates = {"n_components": [1, 2, 3], "data_norm": [8.0, 60.0]}
search = PrivateSearchCV(
    PrivateGaussianMixture(),
    candidates,
    n_trials=30,
    score_bounds=(-16, -4),
    epsilon=2.0,
)
search.fit(X)
print("best:", search.best_params_)
print(search.privacy_report_.guarantee)

# %%
# The winner's score is the largest of several noisy ones, so it
# flatters a little. Other scores are not shown, as they would tell more
# than epsilon allows.
#
# Was it a good choice?
# ---------------------
#
# The data are made up, so we may look. The picture shows how good each
# candidate really is, on new samples and without limits. The search has
# seen none of this.

import warnings

import matplotlib.pyplot as plt

from sktensor_dp import NotEnoughDataWarning

plt.style.use("tableau-colorblind10")

new = (
    rng.standard_normal((20_000, 5))
    + 4 * np.eye(3, 5)[rng.integers(3, size=20_000)]
)
figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
norms = candidates["data_norm"]
for norm, colour, mark in zip(norms, ["C0", "C5"], "os", strict=True):
    quality = []
    for number in candidates["n_components"]:
        mixture = PrivateGaussianMixture(
            number, data_norm=norm, epsilon=1.0
        )
        with warnings.catch_warnings():
            # Some candidates are bad ones. That is why we tune.
            warnings.simplefilter("ignore", NotEnoughDataWarning)
            quality.append(mixture.fit(X).score(new))
    axis.plot(
        candidates["n_components"],
        quality,
        mark + "-",
        color=colour,
        label=f"{norm:g}",
    )
    if norm == search.best_params_["data_norm"]:
        number = search.best_params_["n_components"]
        place = candidates["n_components"].index(number)
        axis.plot(
            number,
            quality[place],
            "o",
            markersize=16,
            markerfacecolor="none",
            color="0.2",
        )
        axis.annotate(
            "chosen by the search",
            (number, quality[place]),
            xytext=(0, 14),
            textcoords="offset points",
            ha="center",
        )
axis.set(
    xlabel="number of clusters",
    ylabel="score (higher is better)",
)
axis.set_xticks(candidates["n_components"])
axis.margins(x=0.25, y=0.2)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(title="data_norm", frameon=False, loc="lower right")
plt.show()

# %%
# As candidates are drawn at random, the best one may not be among those
# tried. Then the search returns the best of the others. More trials
# make that less likely, and cost more noise in each fit.
#
# What it costs
# -------------
#
# Epsilon = 2 for each sample, for the whole search and the model it
# returns. Each fit in it has more noise: about 1.7 times what a single
# fit at epsilon = 2 would have.
#
# If there are public data of the same kind, tune on them instead. That
# costs nothing.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/tuning`: three ways to tune, with their prices.
# - :doc:`/security`: why the running time of a search must not be
#   shown.
# - :class:`~sktensor_dp.PrivateSearchCV` and
#   :func:`~sktensor_dp.make_private_scorer`.
