"""
How many topics should I choose?
================================

As many as your data can show at your epsilon, which may be fewer than
there are. Try numbers on public texts of the same kind and size. Then
fit the private texts once.
"""

# %%
# Why not simply try them on the private texts?
# ---------------------------------------------
#
# Every fit reads the texts and takes a part of the budget. **Epsilon**
# measures this budget: the smaller it is, the less anyone can learn
# about one text, and the larger is the noise. The choice itself also
# tells something. So choose on texts that need no protection, with the
# epsilon and the number of texts that you will have.
#
# Both collections here are made up, from eight topics of different
# weight, with different words. In your case the public one may be last
# year's press, a forum, or manuals.

import numpy as np


def collection(seed, size):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(150, 0.08), size=8)
    weights = np.array([8, 7, 6, 5, 4, 3, 2, 1]) / 36
    shares = rng.dirichlet(weights, size=size)
    return rng.multinomial(40, shares @ topics)


public, held_out = np.split(collection(seed=1, size=12_000), [10_000])
private = collection(seed=2, size=10_000)

# %%
# Perplexity says how well topics predict texts that were not used to
# find them. It is the number of words among which the model is, on
# average, still undecided. Lower is better.

import warnings

from sktensor_dp import NotEnoughDataWarning, PrivateSpectralLDA

numbers = [1, 2, 3, 4, 6, 8, 10, 12]
levels = {
    "epsilon = 0.2": 0.2,
    "epsilon = 2": 2.0,
    "no privacy": float("inf"),
}
perplexity = {}
for name, epsilon in levels.items():
    for number in numbers:
        lda = PrivateSpectralLDA(
            number, epsilon=epsilon, random_state=0
        )
        with warnings.catch_warnings():
            # Beyond what the data can show, fits warn.
            # That is what we are looking for.
            warnings.simplefilter("ignore", NotEnoughDataWarning)
            perplexity[name, number] = lda.fit(public).perplexity(
                held_out
            )

# %%
# Each curve falls, and flattens or rises again where more topics are no
# use. With less privacy that happens later.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

best = {}
figure, axis = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for name, colour, mark in zip(
    levels, ["C5", "C0", "C3"], "osv", strict=True
):
    curve = [perplexity[name, number] for number in numbers]
    axis.plot(numbers, curve, mark + "-", color=colour, label=name)
    best[name] = numbers[int(np.argmin(curve))]
    axis.plot(
        best[name],
        min(curve),
        "o",
        markersize=13,
        markerfacecolor="none",
        color=colour,
    )
axis.plot(
    [],
    [],
    "o",
    markersize=10,
    markerfacecolor="none",
    color="0.4",
    label="best",
)
axis.set(
    xlabel="number of topics asked for",
    ylabel="perplexity (lower is better)",
)
axis.set_xticks(numbers)
axis.grid(axis="y", color="0.9")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()

# %%
# One fit on the private texts
# ----------------------------
#
# Now the private texts are read, once. If fewer topics stand out of the
# noise than were asked for, the fit keeps those and warns.

lda = PrivateSpectralLDA(best["epsilon = 2"], epsilon=2.0).fit(private)
print(lda.n_components_, "topics;", lda.privacy_report_.guarantee)

# %%
# What it costs
# -------------
#
# Epsilon = 2 for each private text. The choice was free, as it looked
# at public texts alone.
#
# If there are no public texts like yours, let
# :class:`~sktensor_dp.PrivateSearchCV` choose. It tries numbers on the
# private texts within a stated epsilon, at the price of more noise.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/tuning`: three ways to choose parameters, and what each
#   costs.
# - :doc:`/topics`: the parameters of a topic model.
# - :class:`~sktensor_dp.PrivateSpectralLDA`: ``forecast`` names the
#   texts needed for so many topics.
