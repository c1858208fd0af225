"""
How do I protect persons who wrote several texts?
=================================================

Pass ``groups=``, which says who wrote each text. Then the person is
protected, with all their texts, however many these are. Without it only
single texts are.
"""

# %%
# Why it matters
# --------------
#
# **Epsilon** limits what a result tells about one *unit*. If the unit
# is a text, then someone with one text is protected by epsilon. Someone
# with twenty texts is protected by about twenty times as much epsilon:
# hardly at all. Those who write most are exposed most.
#
# Here are four thousand made-up members of a forum. Most write little,
# a few write a lot.

import numpy as np

rng = np.random.default_rng(0)
topics = rng.dirichlet(np.full(60, 0.05), size=4)

n_posts = rng.geometric(0.15, size=4000)
member = np.repeat(np.arange(4000), n_posts)
interests = rng.dirichlet(np.full(4, 0.3), size=4000)
X = rng.multinomial(12, interests[member] @ topics)

print(
    f"{len(X):,} posts. Half of the members wrote "
    f"{np.median(n_posts):.0f} or fewer,"
)
print(f"the busiest one {n_posts.max()}.")

# %%
# Three ways to fit
# -----------------
#
# - **every post a unit**: the default. It protects posts, not members.
# - **groups**: the member is the unit. A member counts once, as the
#   mean of all their posts.
# - **one post each**: also protects members, but most posts go to
#   waste.

from sktensor_dp import PrivateSpectralLDA

one_each = np.array(
    [rng.choice(np.flatnonzero(member == who)) for who in range(4000)]
)


def fits(epsilon):
    lda = PrivateSpectralLDA(4, epsilon=epsilon)
    return {
        "groups=member: protects members": lda.fit(
            X, groups=member
        ).components_,
        "one post each: protects members": lda.fit(
            X[one_each]
        ).components_,
        "every post: protects posts only": lda.fit(X).components_,
    }


# %%
# The report says which unit is protected. Read it before you publish:

lda = PrivateSpectralLDA(4, epsilon=2.0)
print("without groups:", lda.fit(X).privacy_report_.guarantee)
print(
    "with groups:   ",
    lda.fit(X, groups=member).privacy_report_.guarantee,
)

# %%
# How much accuracy does it take?
# -------------------------------
#
# The topics are known here, so we can count how much of them was found:
# 100 % means that all probabilities of all words are right. Noise
# differs from fit to fit, so each is made three times. Lines are
# medians, bands go from the worst to the best.

from scipy.optimize import linear_sum_assignment


def correct(found):
    overlap = np.minimum(topics[:, None], found[None]).sum(axis=2)
    best = linear_sum_assignment(-overlap)
    return 100 * overlap[best].sum() / len(topics)


levels = [0.5, 1, 2, 4]
scores = {}
for epsilon in np.repeat(levels, 3):
    for name, found in fits(float(epsilon)).items():
        scores.setdefault(name, []).append(correct(found))

# %%
# Where members were too few, a fit says so by a warning (shown above,
# if there were any).

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
styles = zip(
    scores, ["C0", "C5", "C2"], ["o-", "s-", "^--"], strict=True
)
for name, colour, line in styles:
    low, middle, high = np.sort(
        np.reshape(scores[name], (len(levels), 3))
    ).T
    axis.fill_between(
        levels,
        low,
        high,
        color=colour,
        alpha=0.25,
        linewidth=0,
    )
    axis.plot(levels, middle, line, color=colour, label=name)
axis.set(
    xscale="log",
    xlabel="epsilon of the unit",
    ylabel="topics that are right (%)",
)
axis.set_xticks(levels, [f"{level:g}" for level in levels])
axis.minorticks_off()
axis.set_ylim(top=101)
axis.grid(axis="y", color="0.9")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="lower right")
plt.show()

# %%
# The grey line is no fair rival: its epsilon is that of a post. With
# groups you keep what all posts say, and the promise is to people.
#
# What it costs
# -------------
#
# Epsilon for each member, once. The number of members is public; how
# many posts each wrote, and how many there are in all, is not. Every
# fit on these people's data has to use groups: a budget refuses to add
# up promises to posts and promises to people.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/guarantee`: people, not rows.
# - :doc:`/topics`: several texts of a person, in pipelines too.
