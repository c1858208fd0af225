"""
What does epsilon mean?
=======================

Epsilon is a limit on odds. Whoever sees a private result can change
their mind about what *you* contributed by a factor of at most e to the
power of epsilon.

That factor is 1.1 for epsilon = 0.1, and 2.7 for epsilon = 1. It is 55
for epsilon = 4, and 22,026 for epsilon = 10. This page draws what these
factors do to a suspicion.
"""

# %%
# A suspicion, and what a result makes of it
# ------------------------------------------
#
# Someone suspects that you wrote a certain comment in a survey. Before
# they see any result, they think it as likely as not: their odds are 1
# to 1, which is a probability of 50 %.
#
# Then topics of all comments are published, with epsilon-differential
# privacy. The result may speak for the suspicion or against it, but the
# odds move by a factor of at most ``exp(epsilon)`` in either direction.
# That holds whatever else they know, and however much they compute.

import numpy as np


def odds_to_probability(odds):
    return odds / (1 + odds)


def probability_to_odds(probability):
    return probability / (1 - probability)


print("epsilon  factor on odds  a suspicion of 50 % becomes at most")
for epsilon in [0.1, 1, 4, 10]:
    factor = np.exp(epsilon)
    after = odds_to_probability(factor * probability_to_odds(0.5))
    print(f"{epsilon:7}  {factor:14,.1f}  {after:34.3%}")

# %%
# Weak suspicions stay weak, if epsilon is small
# ----------------------------------------------
#
# Most suspicions start lower. If one person of a thousand wrote the
# comment, and nothing else is known, the odds are 1 to 999. The picture
# follows every suspicion from before (left to right) to after (bottom
# to top).
#
# The diagonal is where nothing changes. The band around it is all that
# a result can do. The narrower the band, the less your contribution can
# be seen.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

before = np.linspace(0.0005, 0.9995, 2000)
odds = probability_to_odds(before)

figure, axes = plt.subplots(
    2,
    2,
    figsize=(6.4, 6.2),
    sharex=True,
    sharey=True,
    layout="constrained",
)
for axis, epsilon in zip(axes.flat, [0.1, 1, 4, 10], strict=True):
    high = 100 * odds_to_probability(odds * np.exp(epsilon))
    low = 100 * odds_to_probability(odds * np.exp(-epsilon))
    axis.fill_between(
        100 * before, low, high, color="C0", alpha=0.35, linewidth=0
    )
    axis.plot(
        [0, 100], [0, 100], color="C3", linestyle="--", linewidth=1
    )
    worst = 100 * odds_to_probability(np.exp(epsilon) / 99)
    axis.plot([1, 1], [1, worst], color="C5", linewidth=2.5)
    axis.plot(1, worst, "o", color="C5")
    axis.annotate(
        f"1 % becomes\nat most {worst:.3g} %",
        (1, worst),
        xytext=(36, 7 if worst < 50 else 84),
        color="C5",
        arrowprops={"arrowstyle": "-", "color": "C5", "linewidth": 0.8},
    )
    axis.set_title(f"epsilon = {epsilon}", loc="left")
    axis.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
figure.supxlabel("suspicion before the result is seen (%)")
figure.supylabel("suspicion after it (%)")
plt.show()

# %%
# How to read it
# --------------
#
# - **Epsilon = 0.1**: the result says next to nothing about one person.
# - **Epsilon = 1**: the usual goal. A suspicion can grow, but it does
#   not become knowledge.
# - **Epsilon = 4**: a strong suspicion can become near certainty in the
#   *worst case*. Worst cases are rare, and real attacks reach much
#   less; the promise itself is weak.
# - **Epsilon = 10**: on its own, the promise protects only those who
#   were hardly suspected.
#
# Two things are left out of the promise. The first is **delta**, a tiny
# probability (one in a million by default) that goes beyond the band.
# The second is what holds of everybody: if a study finds that smokers
# fall ill more often, it says so of every smoker, also of those who
# took no part in it.
#
# What it costs
# -------------
#
# Nothing: this page looked at no data.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_cost_of_epsilon`: what it takes from
#   accuracy.
# - :doc:`/guarantee`: who is protected against what, and what is not
#   covered.
# - :doc:`/budget`: several results about the same people share one
#   epsilon.
# - :doc:`/audit`: epsilon measured by experiment.
