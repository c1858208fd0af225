"""
How do I find topics of comments without revealing who wrote what?
==================================================================

Fit :class:`~sktensor_dp.PrivateCountVectorizer` and
:class:`~sktensor_dp.PrivateSpectralLDA` to the comments. You get topics
as lists of words. Random noise, added while they are computed, hides
what any single comment said.
"""

# %%
# The comments
# ------------
#
# Thirty thousand employees answered "What should we change?". The
# answers here are made up from five themes. As in real surveys, most
# answers speak of one or two themes, and some contain what must never
# get out: a name that only one person would write.

import numpy as np

THEMES = {
    "pay": "salary raise bonus pay inflation "
    "overtime contract pension promotion fair",
    "hours": "shift weekend hours flexible family "
    "holiday remote commute roster evening",
    "food": "canteen lunch coffee vegetarian menu "
    "price queue salad kitchen breakfast",
    "tools": "laptop software network slow printer "
    "update login password screen outdated",
    "bosses": "manager feedback meeting communication decision "
    "trust respect listen goals team",
}
FILLERS = [
    "please",
    "more",
    "less",
    "better",
    "need",
    "always",
    "never",
    "company",
    "time",
]

rng = np.random.default_rng(0)
words = np.array([theme.split() for theme in THEMES.values()])
popularity = 1 / np.arange(1, 11) ** 0.5
shares = rng.dirichlet([0.3, 0.25, 0.2, 0.15, 0.1], size=30_000)


def comment(share):
    theme = rng.choice(5, size=9, p=share)
    rank = rng.choice(10, size=9, p=popularity / popularity.sum())
    text = [*words[theme, rank], *rng.choice(FILLERS, size=4)]
    if rng.random() < 0.1:
        text.append(f"colleague{rng.integers(10**6)}")
    return " ".join(rng.permutation(text))


comments = [comment(share) for share in shares]
print(*comments[:3], sep="\n")

# %%
# One budget for two steps
# ------------------------
#
# **Epsilon** says how much a result may tell about one comment. Whoever
# suspects that you wrote a comment rather than another may change their
# odds by a factor of at most e to the power of epsilon: 7.4 for epsilon
# = 2. **Delta** is a tiny probability beside it.
#
# Two steps read the comments, so they share the budget. The first
# decides which words may be named at all: only words that many people
# used. The second finds topics of these words.

from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateSpectralLDA,
)

budget = BudgetAccountant(epsilon=2.0, delta=1e-6)
for_words, for_topics = budget.split(
    [0.2, 0.8], ["vocabulary", "gaussian"]
)

counts = PrivateCountVectorizer(
    max_words_per_document=15, accountant=budget, **for_words
)
topics = PrivateSpectralLDA(
    n_components=5, accountant=budget, **for_topics
)

X = counts.fit_transform(comments)
topics.fit(X)

vocabulary = counts.get_feature_names_out()
print(
    len(vocabulary),
    "words, of which names:",
    sum("colleague" in word for word in vocabulary),
)

# %%
# No name is among the words. As no comment has over 15 different
# words, half of the words that about so many people used are kept:

print(round(counts.threshold_), "of", len(comments))

# %%
# The topics
# ----------
#
# A topic is a distribution over words. The picture shows the leading
# words of each with their probabilities, intervals for the noise, and
# how much of the words each topic makes up.

import matplotlib.pyplot as plt

from sktensor_dp.plotting import TopicsDisplay

figure, axes = plt.subplots(
    2, 3, figsize=(7.6, 4.8), layout="constrained"
)
for axis in axes.flat[topics.n_components_ :]:
    axis.remove()
TopicsDisplay.from_estimator(
    topics,
    vocabulary,
    n_words=7,
    ax=axes.flat[: topics.n_components_],
)
plt.show()

# %%
# What it costs
# -------------
#
# Words and topics together cost the whole budget, epsilon = 2. The
# accountant would refuse a third step on the same comments.

print(budget)

# %%
# Everything shown above may be published: words, threshold, topics,
# shares. The counts ``X`` are raw data and must stay where the comments
# are. What is protected is **one comment**. If people may write
# several, protect the person: pass ``groups=``.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/topics`: how a fit works, and how to choose its parameters.
# - :doc:`/guarantee`: what exactly is promised.
# - :class:`~sktensor_dp.PrivateCountVectorizer`,
#   :class:`~sktensor_dp.PrivateSpectralLDA` and
#   :class:`~sktensor_dp.BudgetAccountant`: all parameters.
