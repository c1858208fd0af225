"""
How do I count the words of a million people?
=============================================

Let each of them count for a few words, and add noise to the sums. With
a million people the noise is far smaller than the counts, even at
epsilon = 0.1.
"""

# %%
# A million people
# ----------------
#
# Each typed three words into a search box. The words are made up:
# ``w1`` is the most frequent, ``w3000`` the rarest. That few words make
# up most of what people type is as in real life.

import numpy as np

N_PEOPLE, N_WORDS = 1_000_000, 3000

rng = np.random.default_rng(0)
popularity = 1 / np.arange(1, N_WORDS + 1)
typed = rng.choice(
    N_WORDS, size=(N_PEOPLE, 3), p=popularity / popularity.sum()
)
names = np.array([f"w{rank}" for rank in range(1, N_WORDS + 1)])
searches = [" ".join(words) for words in names[typed].tolist()]
print(searches[:4])

# %%
# Count with noise
# ----------------
#
# **Epsilon** limits what the counts may tell about one person: whoever
# suspects that you typed certain words may change their odds by a
# factor of at most e to the power of epsilon. For epsilon = 0.1 that is
# 1.1, next to nothing.
#
# ``min_df=0`` asks for counts beside the words, and drops none.
#
# No list of words has to be known beforehand. Words that few people
# used are left out, because such a word could be a name or a password.

from sktensor_dp import PrivateCountVectorizer

counter = PrivateCountVectorizer(
    analyzer=str.split, max_words_per_document=3, min_df=0, epsilon=0.1
)
counter.fit(searches)

print(f"{len(counter.vocabulary_)} of {N_WORDS} words are kept,")
print(f"half of those that about {counter.threshold_:,.0f} people used")

# %%
# As these data are made up, the counts can be compared with the truth.

pairs = np.unique(
    np.column_stack([np.repeat(np.arange(N_PEOPLE), 3), typed.ravel()]),
    axis=0,
)
truth = np.bincount(pairs[:, 1], minlength=N_WORDS)
found = counter.get_feature_names_out()
rank = np.array([int(name[1:]) for name in found])
released = counter.document_frequencies_
error = 100 * np.abs(released - truth[rank - 1]) / truth[rank - 1]

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

figure, (counts, errors) = plt.subplots(
    2,
    1,
    figsize=(6.4, 5.2),
    sharex=True,
    height_ratios=[3, 2],
    layout="constrained",
)
counts.plot(np.arange(1, N_WORDS + 1), truth, color="C5", label="exact")
counts.plot(
    rank,
    released,
    ".",
    color="C0",
    markersize=3,
    label="released, epsilon = 0.1",
)
counts.axhline(
    counter.threshold_, color="0.4", linestyle="--", linewidth=1
)
counts.annotate(
    "of words at this line half are kept",
    (1, counter.threshold_),
    xytext=(0, -12),
    textcoords="offset points",
    color="0.3",
    fontsize="small",
)
counts.set(
    xscale="log", yscale="log", ylabel="people who typed the word"
)
counts.legend(frameon=False)
errors.plot(rank, error, ".", color="C0", markersize=3)
errors.set(
    xlabel="rank of the word",
    ylabel="error (% of the count)",
    ylim=(0, 50),
)
for axis in (counts, errors):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The noise is the same for all words, about this many people:

print(round(counter.privacy_report_.rows[0].sigma))

# %%
# So a word that a hundred thousand people used is known to within a
# percent, and one that a few thousand used is off by several percent.
# Near the threshold only words remain whose noise was in their favour,
# so their counts are too high.
#
# What it costs
# -------------
#
# Epsilon = 0.1 for each person, once. The number of words each person
# may add is public: with ten words instead of three the noise would be
# about twice as large.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/guarantee`: what is promised to each person.
# - :doc:`/topics`: from words to topics.
# - :class:`~sktensor_dp.PrivateCountVectorizer`: all parameters. Where
#   one person has several texts, pass ``groups=`` to ``fit``.
