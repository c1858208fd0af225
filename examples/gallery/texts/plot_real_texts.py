"""
What are my documents about? Topics of six thousand real texts
==============================================================

Real texts share most of their words, so their topics are harder to tell
apart than made-up ones. Six thousand documents are few for privacy.
This page shows what remains at epsilon = 4, and what you could see
without any privacy.
"""

# %%
# The texts
# ---------
#
# They are the documentation strings of numpy, scipy and scikit-learn:
# public, and on every computer that has this library. To try your own
# files, replace the next line by
# :func:`sktensor_dp.datasets.load_texts`.

from sktensor_dp.datasets import load_docstrings

texts = load_docstrings()
print(f"{len(texts):,} texts")

# %%
# Words, then topics
# ------------------
#
# **Epsilon** is the privacy parameter: the odds that you wrote one of
# these texts rather than another change by a factor of at most e to the
# power of epsilon for whoever sees the result. Words and topics share
# one epsilon. The most frequent words of documentation are left out by
# ``max_df``: they say nothing about the subject.

from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateSpectralLDA,
)


def topics_of(texts, epsilon):
    budget = BudgetAccountant(epsilon=epsilon, delta=1e-6)
    for_words, for_topics = budget.split(
        [0.3, 0.7], ["vocabulary", "gaussian"]
    )
    counts = PrivateCountVectorizer(
        stop_words="english",
        token_pattern=r"(?u)\b[a-z]{4,}\b",
        max_df=0.3,
        max_features=1000,
        accountant=budget,
        **for_words,
    )
    lda = PrivateSpectralLDA(
        n_components=6, accountant=budget, random_state=0, **for_topics
    )
    lda.fit(counts.fit_transform(texts))
    return counts.get_feature_names_out(), lda


exact = topics_of(texts, float("inf"))
private = topics_of(texts, 4.0)

# %%
# Each topic found with privacy is put beside the one it resembles most
# of those without.

import numpy as np
from scipy.optimize import linear_sum_assignment

shared = sorted(set(exact[0]) & set(private[0]))
both = [
    lda.components_[:, np.searchsorted(words, shared)]
    for words, lda in (exact, private)
]
overlap = np.minimum(both[0][:, None], both[1][None]).sum(axis=2)
pairs = np.column_stack(linear_sum_assignment(-overlap))
for one, other in pairs:
    print("no privacy: ", *exact[1].top_words(7, exact[0])[one])
    print(
        "epsilon = 4:",
        *private[1].top_words(7, private[0])[other],
        end="\n\n",
    )

# %%
# The picture
# -----------
#
# Where bars and dots agree, a topic came through the noise. Where dots
# are near zero, it is a mixture of several topics.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

figure, axes = plt.subplots(
    2, 3, figsize=(6.8, 5), layout="constrained"
)
for axis in axes.flat[len(pairs) :]:
    axis.remove()
for place, (axis, (one, other)) in enumerate(
    zip(axes.flat, pairs, strict=False), start=1
):
    words, lda = private
    top = np.argsort(-lda.components_[other])[:8][::-1]
    axis.barh(
        words[top],
        100 * lda.components_[other, top],
        color="C0",
        label="epsilon = 4",
    )
    place_in_exact = [
        np.flatnonzero(exact[0] == word) for word in words[top]
    ]
    without = [
        100 * exact[1].components_[one, at].sum()
        for at in place_in_exact
    ]
    axis.plot(without, range(8), "o", color="C5", label="no privacy")
    axis.set_title(f"Topic {place}", loc="left")
    axis.spines[["top", "right"]].set_visible(False)
figure.legend(
    *axes.flat[0].get_legend_handles_labels(),
    loc="outside upper right",
    ncols=2,
)
figure.supxlabel(
    "probability of the word in the topic (%)", fontsize="medium"
)
plt.show()

# %%
# What it costs
# -------------
#
# Epsilon = 4 for each text. That is a weak promise for a strong
# attacker, and it is what six thousand real documents need for six
# topics. With ten times as many documents the same topics are found at
# an epsilon of about a tenth.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/results`: measured on 20 Newsgroups, beside scikit-learn.
# - :doc:`/topics`: choosing words and parameters.
# - :func:`sktensor_dp.topic_page.write_topic_page`: a web page of
#   topics to hand on.
