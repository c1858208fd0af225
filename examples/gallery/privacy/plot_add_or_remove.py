"""
How do I hide that somebody is in the data at all?
==================================================

Say ``neighbours="add_remove"``. Then even the number of people is
released with noise, so nobody can tell by counting whether one more was
there.
"""

# %%
# When the number itself is a secret
# ----------------------------------
#
# By default the number of people counts as public, as in a survey of
# 5,000 people announced as such. Data about the patients of a clinic
# are different. If it is known that 812 people were treated, and your
# neighbour knows 811 of them, then the number tells about you.
#
# **Epsilon** limits what a result tells about one person: odds change
# by a factor of at most e to its power. What odds these are is up to
# you:
#
# - ``neighbours="replace_one"``: the odds that it was *you* and not
#   somebody else.
# - ``neighbours="add_remove"``: the odds that you were *there* and not
#   absent.
#
# Patients' words
# ---------------
#
# Short notes of 812 patients, made up of a few words each.

import numpy as np

WORDS = [
    "pain",
    "fever",
    "cough",
    "sleep",
    "tired",
    "stress",
    "diet",
    "knee",
    "back",
    "heart",
]

rng = np.random.default_rng(0)
notes = [" ".join(rng.choice(WORDS, size=4)) for _ in range(812)]

# %%
# How often was each word used? The private count needs to know how many
# patients there are, so a noisy number is released first. It takes one
# percent of the budget.

from sktensor_dp import PrivateCountVectorizer

counter = PrivateCountVectorizer(
    neighbours="add_remove",
    max_words_per_document=4,
    min_df=0.05,
    epsilon=1.0,
).fit(notes)
print(counter.privacy_report_.guarantee)

# %%
# The true number, 812, appears nowhere. How far is the released one
# from it? Here the fit is repeated to see that, which you would not do
# with real patients: each fit costs epsilon again.

released = [
    counter.fit(notes).privacy_report_.n_units for _ in range(400)
]

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

figure, axis = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
axis.hist(released, bins=30, color="C0", alpha=0.8)
axis.axvline(812, color="C5", linewidth=2)
axis.annotate(
    "812: the true number",
    (812, 1),
    xycoords=("data", "axes fraction"),
    xytext=(6, -14),
    textcoords="offset points",
    color="C5",
)
axis.set(
    xlabel="number of patients that a fit releases",
    ylabel="fits of 400",
)
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The numbers scatter by about this many patients. One more or less is
# lost in that.

print(round(np.std(released)))

# %%
# Which one to choose
# -------------------
#
# - The number is known anyway: a survey with a fixed sample, all
#   inhabitants of a town. Keep the default.
# - Being in the data is the secret: patients, members, everyone who
#   wrote about a certain subject. Choose ``"add_remove"``.
#
# What it costs
# -------------
#
# One percent of the budget for the number. A fit's epsilon holds for
# the relation it was made for: do not compare epsilons of different
# relations. Streams, searches and private scores need the default.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/guarantee`: replaced, or added and removed.
# - :doc:`/statement`: where a statement says which of the two holds.
# - :class:`~sktensor_dp.PrivateCountVectorizer`,
#   :class:`~sktensor_dp.PrivateSpectralLDA` and
#   :class:`~sktensor_dp.PrivateTensorPowerMethod` have ``neighbours``.
