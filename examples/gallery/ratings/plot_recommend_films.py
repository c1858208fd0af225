"""
How do I recommend films without keeping anyone's ratings?
==========================================================

Learn what all people share, with noise, and forget the ratings. A
person's own taste is then worked out from their own ratings, on their
own device if you like. :class:`~sktensor_dp.PrivateCPCompletion` with
``unit_mode=0`` does both.
"""

# %%
# Ratings of ten thousand people
# ------------------------------
#
# There are sixty films of four kinds. Each person has seen 25 of them
# and gives each 1 to 5 stars. The ratings are made up: films differ in
# quality, and people in what kinds they like.

import numpy as np

N_PEOPLE, N_FILMS, EACH = 10_000, 60, 25
KINDS = ["crime", "comedy", "war", "romance"]
films = [
    f"{kind} {number}" for kind in KINDS for number in range(1, 16)
]

rng = np.random.default_rng(0)
angle = np.repeat(
    np.arange(4), 15
) * np.pi / 2 + 0.3 * rng.standard_normal(N_FILMS)
kind = 0.8 * np.column_stack([np.cos(angle), np.sin(angle)])
quality = 0.4 * rng.standard_normal(N_FILMS)


def rate(tastes):
    """Draw pairs (person, film) and stars by these tastes."""
    person = np.repeat(np.arange(len(tastes)), EACH)
    film = np.argsort(rng.random((len(tastes), N_FILMS)), axis=1)[
        :, :EACH
    ].ravel()
    stars = (
        3.2 + quality[film] + (tastes[person] * kind[film]).sum(axis=1)
    )
    stars += 0.5 * rng.standard_normal(len(film))
    return np.column_stack([person, film]), np.clip(
        np.rint(stars), 1, 5
    )


X, y = rate(rng.standard_normal((N_PEOPLE, 2)))
print(
    f"{len(y):,} ratings. The first: "
    f"person {X[0, 0]} gave {films[X[0, 1]]!r} {y[0]:.0f} stars"
)

# %%
# Learn what people share
# -----------------------
#
# With ``unit_mode=0`` everything that one person rated is protected:
# which films, how many, how well. **Epsilon** says how well: for
# whoever sees the model, the odds that you are one person rather than
# another change by a factor of at most e to the power of epsilon.
#
# The range of stars, the number of people and that of films are public.
# They are what ``bounds`` and ``shape`` say. ``rank`` is the number of
# dimensions of taste to look for: rather one too many, as those that
# the noise hides are left out by themselves.

from sktensor_dp import PrivateCPCompletion

model = PrivateCPCompletion(
    rank=3,
    bounds=(1, 5),
    shape=(N_PEOPLE, N_FILMS),
    unit_mode=0,
    epsilon=3.0,
)
model.fit(X, y)
print(model.privacy_report_)

# %%
# The model now knows how good each film is, and which films the same
# people like. It knows nobody: no number in it belongs to one person.
#
# A new person
# ------------
#
# Somebody who likes crime and dislikes war rates 25 films. ``fold_in``
# computes their taste from these and from the model. It keeps nothing,
# so the ratings need not leave the device.

taste = np.array([[1.3, 0.0]])
seen, stars = rate(taste)
own = model.fold_in(seen, stars)

everything = np.column_stack(
    [np.zeros(N_FILMS, int), np.arange(N_FILMS)]
)
for_anyone, for_them = (
    model.predict(everything),
    own.predict(everything),
)
best = [
    film for film in np.argsort(-for_them) if film not in seen[:, 1]
][:5]
print("recommended:", ", ".join(films[film] for film in best))

# %%
# The picture has one column of marks for each film. The line is what
# the person would say. For anyone else the model predicts the quality
# of a film; with their own ratings it follows their taste.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

would_say = np.clip(3.2 + quality + taste[0] @ kind.T, 1, 5)
order = np.argsort(would_say)
figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
axis.plot(
    would_say[order], color="0.2", label="what the person would say"
)
axis.plot(
    for_anyone[order],
    "^",
    color="C1",
    markersize=5,
    label="predicted for anyone",
)
axis.plot(
    for_them[order],
    "o",
    color="C0",
    markersize=5,
    label="predicted from 25 own ratings",
)
axis.set(
    xlabel="films, from worst to best for this person",
    ylabel="stars",
    ylim=(0.8, 5.3),
)
axis.set_xticks([])
axis.grid(axis="y", color="0.9")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="upper left")
plt.show()

# %%
# What it costs
# -------------
#
# Epsilon = 3 for each of the ten thousand people, once, for all they
# rated. The new person pays nothing, because nothing is released: their
# predictions are as private as their ratings, and belong to them.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/completion`: models of ratings, and what to expect on
#   MovieLens.
# - :doc:`/guarantee`: what is protected and what is public.
# - :class:`~sktensor_dp.PrivateCPCompletion`: all parameters.
