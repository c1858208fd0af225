"""
How do I find clusters of customers and keep each customer private?
===================================================================

Fit a mixture of Gaussians with
:class:`~sktensor_dp.PrivateGaussianMixture`. It finds the centre, the
size and the shape of each cluster from noisy averages over all
customers.
"""

# %%
# Fifty thousand customers
# ------------------------
#
# Each has four numbers, on a scale where 0 is ordinary and 1 is one
# step up or down. The customers are made up, from four clusters of
# different size and shape: who visits more often spends less.

import numpy as np

FEATURES = [
    "visits a month",
    "spent per visit",
    "share bought online",
    "years as a customer",
]
CENTRES = np.array(
    [
        [-2.5, 2, 2, -1],
        [3, -2.5, -1, 2],
        [1, 2.5, -2.5, 1],
        [-2, -2, 0.5, -2],
    ]
)

rng = np.random.default_rng(0)
cluster = rng.choice(4, size=50_000, p=[0.4, 0.3, 0.2, 0.1])
spread = np.array([0.8, 1, 0.7, 0.9])[cluster]
steps = rng.standard_normal((50_000, 4))
steps[:, 1] = 0.5 * steps[:, 1] - 0.8 * steps[:, 0]
X = CENTRES[cluster] + spread[:, None] * steps

# %%
# Say how large a customer may be
# -------------------------------
#
# Noise has to hide the most unusual customer there could be.
# ``data_norm`` says how far from the origin that is; whoever is farther
# is moved in. Choose it from what you know of the scale, not from the
# data, because it is public. Here: all four numbers at most 3 or 4 in
# size, so a norm of 7.
#
# **Epsilon** is the privacy parameter. Whoever suspects that a customer
# has certain numbers rather than others may change their odds by a
# factor of at most e to the power of epsilon: 2.7 for epsilon = 1.

from sktensor_dp import PrivateGaussianMixture

mixture = PrivateGaussianMixture(4, data_norm=7.0, epsilon=1.0)
print(mixture.forecast(*X.shape))

# %%
# Enough customers. So fit:

mixture.fit(X)
print(mixture.privacy_report_.guarantee)

# %%
# The centres are in ``means_``, shares in ``weights_``, shapes in
# ``covariances_``, the largest cluster first:

for place, (share, mean) in enumerate(
    zip(mixture.weights_, mixture.means_, strict=True), start=1
):
    centre = ", ".join(f"{value:+.1f}" for value in mean)
    print(f"cluster {place}: {share:4.0%} of customers, ({centre})")

# %%
# The picture
# -----------
#
# Dots are customers, which only their holder can draw. Ellipses are
# what was released: the centre of each cluster, and two standard
# deviations around it.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

LABEL = {
    "boxstyle": "circle",
    "facecolor": "white",
    "edgecolor": "C5",
    "pad": 0.2,
}
turn = np.linspace(0, 2 * np.pi, 100)
circle = np.array([np.cos(turn), np.sin(turn)])
figure, axes = plt.subplots(
    1, 2, figsize=(6.8, 3.7), layout="constrained"
)
for axis, (across, up) in zip(axes, [(0, 1), (2, 3)], strict=True):
    axis.plot(
        X[:2000, across],
        X[:2000, up],
        ".",
        color="C0",
        alpha=0.25,
        markersize=3,
    )
    seen = [across, up]
    for place, (mean, covariance) in enumerate(
        zip(mixture.means_, mixture.covariances_, strict=True), start=1
    ):
        x, y = mean[seen]
        root = np.linalg.cholesky(covariance[np.ix_(seen, seen)])
        axis.plot(
            *(mean[seen][:, None] + 2 * root @ circle), color="C5"
        )
        axis.text(x, y, place, ha="center", va="center", bbox=LABEL)
    axis.set(
        xlabel=f"{FEATURES[across]} (steps)",
        ylabel=f"{FEATURES[up]} (steps)",
        xlim=(-6.5, 6.5),
        ylim=(-6.5, 6.5),
    )
    axis.set_aspect("equal")
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# ``predict_proba`` tells for any customer how likely each cluster is.
# Its answer is about that customer, and is not protected:

asked = np.array([[-2, 2, 2, -1], [0, 0, 0, 0]])
print(mixture.predict_proba(asked).round(2))

# %%
# What it costs
# -------------
#
# Epsilon = 1 for each customer. The forecast before was free. Ask for
# more clusters than you expect: those that the data does not support
# are joined.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/mixtures`: how many groups, missing cells, averages, and
#   ``data_norm``.
# - :doc:`/tuning`: choosing ``data_norm`` or the number of clusters
#   privately.
# - :class:`~sktensor_dp.PrivateGaussianMixture`: all parameters.
