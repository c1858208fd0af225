"""
What does the noise look like? Released against exact word counts
=================================================================

Every count is off by about the same number of documents, large or
small. Frequent words keep their counts, and words of a few documents
vanish. This page puts exact and released numbers side by side, which
only works because the texts are public.
"""

# %%
# Six thousand public texts
# -------------------------
#
# The texts are the first lines of the documentation strings of numpy,
# scipy and scikit-learn, as installed on the computer that built this
# page.

from sktensor_dp.datasets import load_docstrings

texts = [text[:400] for text in load_docstrings()]
print(f"{len(texts):,} texts. The first begins: {texts[0][:60]!r}")

# %%
# Exact and private counts
# ------------------------
#
# scikit-learn's vectorizer counts in how many texts each word occurs,
# exactly. :class:`~sktensor_dp.PrivateCountVectorizer` counts with
# noise. Three things differ:
#
# - Each count gets random noise. Its size depends on **epsilon**: the
#   smaller this number, the less the counts may tell about any one
#   text. It grows with the number of words that texts hold.
# - Of texts that hold more words than nearly all others, some words are
#   not counted, so that no text can change much.
# - Words that too few texts hold are not even named.
#
# ``min_df=0`` asks for the counts beside the words, for a fifth of the
# budget, and drops no word.

from sklearn.feature_extraction.text import CountVectorizer

from sktensor_dp import PrivateCountVectorizer

exact = CountVectorizer(stop_words="english", binary=True)
exact_counts = exact.fit_transform(texts).sum(axis=0).A1
exact_of = dict(
    zip(exact.get_feature_names_out(), exact_counts, strict=True)
)

private = {
    epsilon: PrivateCountVectorizer(
        stop_words="english",
        min_df=0,
        epsilon=epsilon,
    ).fit(texts)
    for epsilon in (0.5, 5.0)
}

# %%
# Few of the words stay, and these are the ones that many texts share:

print(
    f"exact: {len(exact_of):,} words, of which "
    f"{(exact_counts == 1).sum():,} in one text only"
)
for epsilon, vectorizer in private.items():
    print(
        f"epsilon = {epsilon}: {len(vectorizer.vocabulary_):,} words; "
        f"half of those in about {vectorizer.threshold_:.0f} texts stay"
    )

# %%
# The picture
# -----------
#
# Each point is a word. On the diagonal the released count is the exact
# one. The shaded range is what noise does to most of them (two standard
# deviations). Points tend to lie below the diagonal, as some texts had
# more words than they may contribute.

import matplotlib.pyplot as plt
import numpy as np

plt.style.use("tableau-colorblind10")

figure, axes = plt.subplots(
    1,
    2,
    figsize=(6.8, 3.9),
    sharex=True,
    sharey=True,
    layout="constrained",
)
line = np.geomspace(10, 5000, 200)
for axis, (epsilon, vectorizer) in zip(
    axes, private.items(), strict=True
):
    names = vectorizer.get_feature_names_out()
    # The report states the noise of the last release, as a share.
    sigma = vectorizer.privacy_report_.rows[-1].sigma * len(texts)
    axis.fill_between(
        line,
        np.maximum(line - 2 * sigma, 1),
        line + 2 * sigma,
        color="C2",
        alpha=0.5,
        linewidth=0,
    )
    axis.plot(line, line, color="0.4", linewidth=0.8)
    axis.plot(
        [exact_of[name] for name in names],
        vectorizer.document_frequencies_,
        ".",
        color="C0",
        markersize=3,
        label="a word",
    )
    axis.axhline(
        vectorizer.threshold_,
        color="C5",
        linestyle="--",
        label="threshold",
    )
    axis.set_title(f"epsilon = {epsilon}", loc="left")
    axis.set(
        xscale="log", yscale="log", xlim=(10, 5000), ylim=(10, 5000)
    )
    axis.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, loc="upper left")
figure.supxlabel(
    "texts that hold the word: exact number", fontsize="medium"
)
figure.supylabel("released number", fontsize="medium")
plt.show()

# %%
# What it costs
# -------------
#
# Each vectorizer costs its own epsilon, and here both are stated for
# one text. On private data you would choose one. Exact counts on
# private data may not be shown at all, so there this picture cannot be
# drawn. The report says how large the noise is without them:

print(private[0.5].privacy_report_)

# %%
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/guarantee`: the promise, and where noise comes from.
# - :doc:`/topics`: what to do with the counts.
# - :class:`~sktensor_dp.PrivateCountVectorizer`: all parameters.
