"""
What does epsilon = 1 cost me?
==============================

Little if you have tens of thousands of people, a lot if you have a
thousand. What counts is the number of people times epsilon. This page
measures it for three kinds of data.
"""

# %%
# Epsilon against accuracy
# ------------------------
#
# **Epsilon** is the price tag of privacy. A small one hides each person
# well, by much noise; a large one needs little noise. How much a given
# noise hurts depends on what you want to know, and of how many people.
#
# Three tasks on made-up data, each with 20,000 people. Their truth is
# known, so that quality is a number from 0 % to 100 %.

import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment

from sktensor_dp import (
    NotEnoughDataWarning,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
)

N = 20_000
rng = np.random.default_rng(0)

# %%
# **Topics of texts.** Forty words each, of five topics. Quality: how
# much of the topics' probabilities is right.

topics = rng.dirichlet(np.full(150, 0.05), size=5)
texts = rng.multinomial(
    40, rng.dirichlet(np.full(5, 0.2), size=N) @ topics
)


def quality_of_topics(epsilon):
    found = (
        PrivateSpectralLDA(5, epsilon=epsilon).fit(texts).components_
    )
    overlap = np.minimum(topics[:, None], found[None]).sum(axis=2)
    return overlap[linear_sum_assignment(-overlap)].sum() / 5


# %%
# **Clusters of samples.** Four clusters in ten dimensions. Quality: how
# many samples are given the cluster that they came from.

centres = 4.5 * np.linalg.qr(rng.standard_normal((10, 4)))[0].T
cluster = rng.integers(4, size=N)
samples = centres[cluster] + rng.standard_normal((N, 10))


def quality_of_clusters(epsilon):
    mixture = PrivateGaussianMixture(
        4, data_norm=8.0, epsilon=epsilon
    ).fit(samples)
    given = mixture.predict(samples)
    table = np.zeros((4, 4))
    np.add.at(table, (cluster, given), 1)
    return table[linear_sum_assignment(-table)].sum() / N


# %%
# **Ratings of users.** Fifteen ratings each, of forty things.
# Everything of a user is hidden. Quality: how much of what differs
# between ratings is predicted, chance left out.

taste, kind = rng.standard_normal((N, 1)), rng.standard_normal((40, 1))
thing = np.argsort(rng.random((N, 40)), axis=1)[:, :15]
user = np.arange(N)[:, None] + 0 * thing
exact = 3 + 0.6 * (taste[user] * kind[thing])[..., 0]
ratings = np.clip(exact + 0.5 * rng.standard_normal(exact.shape), 1, 5)
X, y = np.column_stack([user.ravel(), thing.ravel()]), ratings.ravel()


def quality_of_ratings(epsilon):
    # One component more than there are tastes:
    # noise can hide the only one that is sought.
    model = PrivateCPCompletion(
        2, bounds=(1, 5), shape=(N, 40), unit_mode=0, epsilon=epsilon
    ).fit(X, y)
    found = model.fold_in(X, y).predict(X)
    return max(
        1 - np.mean((found - exact.ravel()) ** 2) / exact.var(), 0
    )


# %%
# Fits that have too little to go by warn. Here that is part of the
# answer, so the warnings are silenced and the picture shows what they
# would say.

tasks = {
    "topics of texts": quality_of_topics,
    "clusters of samples": quality_of_clusters,
    "ratings, all of a user hidden": quality_of_ratings,
}
levels = [0.03, 0.1, 0.3, 1, 3, 10]
with warnings.catch_warnings():
    warnings.simplefilter("ignore", NotEnoughDataWarning)
    private = {
        name: [task(epsilon) for epsilon in levels]
        for name, task in tasks.items()
    }
    without = {name: task(float("inf")) for name, task in tasks.items()}

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

figure, axis = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for (name, curve), colour, mark in zip(
    private.items(), ["C0", "C5", "C3"], "osv", strict=True
):
    axis.plot(
        levels,
        100 * np.array(curve),
        mark + "-",
        color=colour,
        label=name,
    )
    axis.plot([30], [100 * without[name]], mark, color=colour)
axis.axvline(1, color="0.6", linestyle="--", linewidth=1)
axis.set(
    xscale="log", xlabel="epsilon", ylabel="quality (%)", ylim=(0, 103)
)
axis.set_xticks(
    [*levels, 30], [*(f"{level:g}" for level in levels), "no\nprivacy"]
)
axis.minorticks_off()
axis.grid(axis="y", color="0.9")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="lower right")
plt.show()

# %%
# How to use it
# -------------
#
# - With half as many people each curve moves to the right, to about
#   twice the epsilon.
# - What everybody shares comes first: clusters far apart, frequent
#   topics. Fine detail, such as tastes, needs more people or more
#   epsilon.
# - Every estimator has ``forecast``, which answers for your numbers
#   before anything is spent.
#
# What it costs
# -------------
#
# These data are made up, so nothing was spent. On real data do not draw
# such a picture: every fit would be charged, and the largest epsilon
# counts most.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/results`: quality on real data, measured.
# - :doc:`/guarantee`: what epsilon promises.
# - :class:`~sktensor_dp.PrivateSpectralLDA`,
#   :class:`~sktensor_dp.PrivateGaussianMixture` and
#   :class:`~sktensor_dp.PrivateCPCompletion`.
