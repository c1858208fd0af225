"""
Should I protect one rating, or everything a user rated?
========================================================

Everything a user rated, if you can: people think of themselves, not of
single stars. With many users and few films it costs hardly more. With
many films and few users, often only single ratings can be protected.
"""

# %%
# Two promises
# ------------
#
# **Epsilon** limits what a model tells about one *unit*. There are two
# units to choose from.
#
# =============  ===========================  =======================
# ``unit_mode``  hidden                       visible
# =============  ===========================  =======================
# ``None``       how many stars one film got  who rated which films
# ``0``          all that a user rated        the number of users
# =============  ===========================  =======================
#
# If a user gave a hundred ratings, then ``None`` hides each of them,
# but not what they say together. That someone watched a film at all is
# public then.
#
# Made-up ratings
# ---------------
#
# Four thousand users rate 25 of 60 films each, from 1 to 5 stars. Two
# dimensions of taste decide what they like. A tenth of the ratings is
# kept aside to test predictions.

import numpy as np

N_USERS, N_FILMS, EACH = 4000, 60, 25

rng = np.random.default_rng(0)
taste, kind = (
    rng.standard_normal((N_USERS, 2)),
    0.55 * rng.standard_normal((N_FILMS, 2)),
)
user = np.repeat(np.arange(N_USERS), EACH)
film = np.argsort(rng.random((N_USERS, N_FILMS)), axis=1)[
    :, :EACH
].ravel()
stars = (
    3.2
    + 0.4 * rng.standard_normal(N_FILMS)[film]
    + (taste[user] * kind[film]).sum(axis=1)
)
y = np.clip(np.rint(stars + 0.5 * rng.standard_normal(len(user))), 1, 5)
X = np.column_stack([user, film])
test = rng.random(len(y)) < 0.1

# %%
# Both units at several epsilons
# ------------------------------
#
# Without a ``unit_mode`` a model predicts at once. With one it holds
# nothing of any user, so ``fold_in`` works out each user's taste from
# their own ratings, where these are.

import warnings

from sktensor_dp import NotEnoughDataWarning, PrivateCPCompletion


def error(unit_mode, epsilon):
    """Root of the mean squared error of predicted ratings, in stars."""
    model = PrivateCPCompletion(
        3,
        bounds=(1, 5),
        shape=(N_USERS, N_FILMS),
        unit_mode=unit_mode,
        epsilon=epsilon,
    )
    with warnings.catch_warnings():
        # At a small epsilon no taste can be found: see the picture.
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        model.fit(X[~test], y[~test])
    if unit_mode is not None:
        model = model.fold_in(X[~test], y[~test])
    return np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2))


def typical_error(unit_mode, epsilon):
    """Median of three fits: noise differs from fit to fit."""
    return np.median([error(unit_mode, epsilon) for _ in range(3)])


levels = [0.5, 1, 2, 4, 8]
errors = {
    unit_mode: [typical_error(unit_mode, epsilon) for epsilon in levels]
    for unit_mode in (None, 0)
}
without = error(None, float("inf"))
mean = np.std(y[test])

# %%
# The picture
# -----------
#
# The dashed line above is the error of predicting the mean of all
# ratings, always. The one below is that of the same model without any
# privacy. A useful model is well below the first.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
axis.plot(
    levels,
    errors[None],
    "s-",
    color="C5",
    label="one rating is protected",
)
axis.plot(
    levels,
    errors[0],
    "o-",
    color="C0",
    label="everything of a user is protected",
)
for height, text, away in [
    (mean, "always the mean", 4),
    (without, "no privacy", -13),
]:
    axis.axhline(height, color="0.4", linestyle="--", linewidth=1)
    axis.annotate(
        text,
        (levels[0], height),
        xytext=(0, away),
        textcoords="offset points",
        color="0.3",
        fontsize="small",
    )
axis.set(
    xscale="log",
    xlabel="epsilon of the unit",
    ylabel="error of a prediction (stars)",
)
axis.set_xticks(levels, [f"{level:g}" for level in levels])
axis.minorticks_off()
axis.set_ylim(0.4, 1.15 * mean)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="lower left")
plt.show()

# %%
# Here the stronger promise even has the smaller error. What it needs of
# the users are sums over all four thousand, whose noise hardly shows. A
# model without a ``unit_mode`` also holds the taste of each user, which
# it has to find in 25 noisy ratings.
#
# Nor do the two epsilons mean the same. For a user with 25 ratings,
# epsilon = 1 for each rating adds up to as much as 25 for all of them.
#
# What it costs
# -------------
#
# On real data you would fit once, at one epsilon, for one unit. A
# budget refuses to add up promises to ratings and promises to users.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/completion`: both units on MovieLens.
# - :doc:`/guarantee`: units and neighbours.
# - :class:`~sktensor_dp.PrivateCPCompletion`: ``unit_mode``.
