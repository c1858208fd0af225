"""
How many documents do I need for private topics?
=================================================

Thousands, mostly. How many exactly depends on the number of topics, the
number of words and on epsilon. ``forecast`` says it before any data are
read, and this page checks it.
"""

# %%
# Ask before you spend
# --------------------
#
# Topics are hidden by noise of a fixed size. More documents make the
# topics' own signal larger and leave the noise as it is. So for each
# **epsilon**, the privacy parameter, there is a number of documents
# from which topics stand out. Small epsilon: much privacy, much noise,
# many documents.
#
# The forecast needs public numbers only and costs nothing.

from sktensor_dp import PrivateSpectralLDA

lda = PrivateSpectralLDA(n_components=5, epsilon=1.0)
print(
    lda.forecast(n_samples=10_000, n_features=200, document_length=30)
)

# %%
# It says the least number for topics that share few words. Here it is
# for other settings:

print("epsilon   5 topics  10 topics  20 topics")
for epsilon in [0.5, 1, 2, 4, 8]:
    needed = [
        PrivateSpectralLDA(n_topics, epsilon=epsilon)
        .forecast(n_samples=10_000, n_features=200, document_length=30)
        .n_samples_needed
        for n_topics in (5, 10, 20)
    ]
    print(f"{epsilon:7}", *(f"{number:10,}" for number in needed))

# %%
# Does it hold?
# -------------
#
# Now documents are made of five topics that are known, so that what is
# found can be compared with the truth. A score of 100 % means that
# every word of every topic has its right probability. A topic that was
# not found counts as nothing.

import numpy as np
from scipy.optimize import linear_sum_assignment

rng = np.random.default_rng(0)
topics = rng.dirichlet(np.full(200, 0.05), size=5)


def documents(number):
    shares = rng.dirichlet(np.full(5, 0.2), size=number)
    return rng.multinomial(30, shares @ topics)


def correct(found):
    """Mean overlap of true topics with those found, in percent."""
    overlap = np.minimum(topics[:, None], found[None]).sum(axis=2)
    return (
        100
        * overlap[linear_sum_assignment(-overlap)].sum()
        / len(topics)
    )


# %%
# Where released numbers show that there were too few documents, the fit
# warns. These warnings are expected here: they are recorded, and drawn
# as hollow marks.

import warnings

from sktensor_dp import NotEnoughDataWarning

sizes = [500, 1000, 2000, 5000, 10_000, 20_000, 50_000]
X = documents(max(sizes))
scores, warned = {}, {}
for epsilon in [0.5, 2, 8]:
    for size in sizes:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", NotEnoughDataWarning)
            fitted = PrivateSpectralLDA(5, epsilon=epsilon).fit(
                X[:size]
            )
        scores[epsilon, size] = correct(fitted.components_)
        warned[epsilon, size] = len(caught) > 0

# %%
# The curves rise where the forecast (dotted) says that topics begin to
# stand out. Allow for a few times that number: it is a least one.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

figure, axis = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for (epsilon, colour), mark in zip(
    {0.5: "C5", 2: "C0", 8: "C3"}.items(), "ovs", strict=True
):
    curve = [scores[epsilon, size] for size in sizes]
    axis.plot(sizes, curve, color=colour, label=f"epsilon = {epsilon}")
    for size in sizes:
        filling = "white" if warned[epsilon, size] else colour
        axis.plot(
            size,
            scores[epsilon, size],
            mark,
            color=colour,
            markerfacecolor=filling,
        )
    needed = PrivateSpectralLDA(5, epsilon=epsilon).forecast(
        10_000, 200, document_length=30
    )
    axis.axvline(
        needed.n_samples_needed,
        color=colour,
        linestyle=":",
        linewidth=1.5,
    )
axis.plot(
    [],
    [],
    "o",
    color="0.3",
    markerfacecolor="white",
    label="the fit warned",
)
axis.plot([], [], ":", color="0.3", label="forecast: least number")
axis.set(
    xscale="log",
    ylim=(0, 102),
    xlabel="documents",
    ylabel="topics that are right (%)",
)
axis.set_xticks(
    sizes, [f"{size:,}" for size in sizes], fontsize="small"
)
axis.minorticks_off()
axis.grid(axis="y", color="0.9")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="lower right")
plt.show()

# %%
# What it costs
# -------------
#
# The forecast is free. On real data you would fit once and pay once:
# trying several epsilons on the same documents adds up, see
# :doc:`/budget`.
#
# Ask the other way round, too: the least epsilon that is enough for the
# documents you have. ``None`` would say that no epsilon up to 10 is.

figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for n_topics, colour in zip(
    (5, 10, 20), ("C0", "C3", "C5"), strict=True
):
    lda = PrivateSpectralLDA(n_topics, epsilon=1.0)
    least = [
        lda.forecast(size, 200, document_length=30).epsilon_for(
            "enough"
        )
        for size in sizes
    ]
    axis.plot(
        sizes, least, "o-", color=colour, label=f"{n_topics} topics"
    )
axis.set(
    xscale="log",
    yscale="log",
    xlabel="documents",
    ylabel="least epsilon",
)
axis.set_xticks(
    sizes, [f"{size:,}" for size in sizes], fontsize="small"
)
axis.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
axis.minorticks_off()
axis.grid(color="0.9")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()

# %%
# Too few documents? Ask for fewer topics, keep fewer words
# (``max_features`` of :class:`~sktensor_dp.PrivateCountVectorizer`), or
# accept a larger epsilon.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/topics`: what a fit does with the budget.
# - :doc:`/results`: the same question for real texts.
# - :class:`~sktensor_dp.PrivateSpectralLDA`: ``forecast`` and all other
#   methods.
