"""
Will private predictions work on my ratings? Ask before you spend
==================================================================

``forecast`` tells from public numbers what error to expect: how many
ratings, users and items there are, the range of values, and epsilon. It
reads no data, so it costs nothing.
"""

# %%
# One question
# ------------
#
# A shop has 5,000 users, 500 products and 100,000 ratings of 1 to 5
# stars. It wants to predict ratings at **epsilon** = 1. That is the
# privacy parameter: small values hide a rating well, and need much
# noise.

from sktensor_dp import PrivateCPCompletion

model = PrivateCPCompletion(bounds=(1, 5), epsilon=1.0)
print(model.forecast(100_000, (5000, 500)))

# %%
# RMSE is the root of the mean squared error, here in stars. A *bias* is
# by how much a user is kinder than others, or a product better. A
# *component* is a taste: which users like which products.
#
# So at epsilon = 1 the mean and biases can be learnt, and tastes
# cannot. What would help?
#
# Many questions
# --------------
#
# Forty forecasts take a moment. The picture shows for which numbers of
# ratings and which epsilon it is worth beginning.

import numpy as np

numbers = np.array([3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000])
levels = np.array([0.1, 0.2, 0.5, 1, 2, 5, 10])

gain = np.zeros((len(numbers), len(levels)))
tastes = np.zeros(gain.shape, dtype=bool)
for row, number in enumerate(numbers):
    for column, epsilon in enumerate(levels):
        model = PrivateCPCompletion(
            bounds=(1, 5), epsilon=float(epsilon)
        )
        forecast = model.forecast(int(number), (5000, 500))
        gain[row, column] = 1 - min(
            forecast.of_biases / forecast.of_mean, 1
        )
        tastes[row, column] = forecast.finds_components

# %%
# Darker cells have smaller errors than predicting the mean. Where a
# cell has a star, components (tastes) can be found on top, which no
# colour shows.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

figure, axis = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
image = axis.imshow(
    100 * gain, cmap="Blues", origin="lower", aspect="auto", vmin=0
)
for row, column in np.argwhere(tastes):
    dark = gain[row, column] > 0.6 * gain.max()
    axis.text(
        column,
        row,
        "★",
        ha="center",
        va="center",
        color="white" if dark else "black",
    )
axis.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
axis.set_yticks(
    range(len(numbers)), [f"{number:,}" for number in numbers]
)
axis.set(xlabel="epsilon (one rating is protected)", ylabel="ratings")
figure.colorbar(
    image, label="gain of biases over the mean (% of the error)"
)
plt.show()

# %%
# The forecast has to assume how much values differ, and says so: by a
# quarter of their range, and biases by a tenth. Your data may differ
# more or less.
#
# What it costs
# -------------
#
# Nothing. Ask as often as you like.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/completion`: what was measured, on MovieLens and on tensors.
# - :doc:`/tuning`: when a forecast is not enough.
# - :class:`~sktensor_dp.PrivateCPCompletion` and
#   :class:`~sktensor_dp.PrivateSpectralLDA`, which has a ``forecast``
#   too.
