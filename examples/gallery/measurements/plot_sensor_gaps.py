"""
How do I fill gaps in sensor data without exposing single readings?
===================================================================

Sensors that measure similar things rise and fall together. A model of
what they share fills the gaps.
:class:`~sktensor_dp.PrivateCPCompletion` learns it with noise that
hides every single reading.
"""

# %%
# Electricity meters with gaps
# ----------------------------
#
# A hundred homes report every hour how much power they use. Who can
# read that knows when people sleep, cook and travel. Here are four
# made-up weeks: homes have a morning peak, an evening peak and a
# heater, each of its own strength. Now and then a meter is silent for a
# day.

import numpy as np

N_HOMES, N_HOURS = 100, 28 * 24

rng = np.random.default_rng(0)
hour = np.arange(N_HOURS)
morning = np.exp(-((hour % 24 - 7.5) ** 2) / 4)
evening = np.exp(-((hour % 24 - 19) ** 2) / 8)
cold = 1 + np.sin(2 * np.pi * hour / (9 * 24)) * 0.8
strength = rng.gamma(2, 0.5, size=(3, N_HOMES, 1))
power = (
    0.2
    + strength[0] * morning
    + 1.5 * strength[1] * evening
    + 0.7 * strength[2] * cold
)
power = np.clip(power + 0.15 * rng.standard_normal(power.shape), 0, 6)

seen = np.ones(power.shape, dtype=bool)
for home in range(N_HOMES):
    for start in rng.choice(N_HOURS - 24, size=4):
        seen[home, start : start + 24] = False
X, y = np.argwhere(seen), power[seen]
print(f"{len(y):,} readings, {(~seen).mean():.0%} missing")

# %%
# Fill them
# ---------
#
# A table has a row for each reading: number of the home, number of the
# hour, and the power. ``bounds`` is the public range of a reading, in
# kilowatts: noise has to hide any change within it. **Epsilon** says
# how well it does. Whoever suspects that a reading was one value rather
# than another may change their odds by a factor of at most e to the
# power of epsilon.

from sktensor_dp import PrivateCPCompletion


def filled(epsilon):
    model = PrivateCPCompletion(
        rank=3,
        bounds=(0, 6),
        shape=power.shape,
        epsilon=epsilon,
        random_state=0,
    )
    return model.fit(X, y).complete()


by_epsilon = {
    "epsilon = 4": filled(4.0),
    "no privacy": filled(float("inf")),
}
home_mean = np.array(
    [
        values[known].mean()
        for values, known in zip(power, seen, strict=True)
    ]
)


def error(found):
    return np.sqrt(np.mean((found - power)[~seen] ** 2))


print(
    "error in the gaps:",
    f"{error(home_mean[:, None] + 0 * power):.2f} kW by its mean",
)
for name, found in by_epsilon.items():
    print(f"{name}: {error(found):.2f} kW")

# %%
# One home, ten days. The gaps are shaded; what really happened there is
# drawn thin.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

home = int(np.argmax(strength[1, :, 0]))
gaps = np.flatnonzero(~seen[home])
first = min(max(gaps[0] - 72, 0), N_HOURS - 240)
days = hour[first : first + 240]

figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
given = np.where(seen[home], power[home], np.nan)[days]
axis.fill_between(
    days / 24,
    0,
    6,
    where=~seen[home][days],
    color="C2",
    alpha=0.45,
    linewidth=0,
)
axis.plot(
    days / 24,
    power[home][days],
    color="C3",
    linewidth=0.7,
    label="really used",
)
axis.plot(days / 24, given, color="C3", linewidth=1.8, label="reported")
inside = np.where(seen[home], np.nan, by_epsilon["epsilon = 4"][home])[
    days
]
axis.plot(
    days / 24,
    inside,
    color="C5",
    linewidth=1.8,
    label="filled, epsilon = 4",
)
axis.set(xlabel="day", ylabel="power (kW)", ylim=(0, 6))
axis.spines[["top", "right"]].set_visible(False)
axis.legend(
    frameon=False,
    ncols=3,
    loc="upper center",
    bbox_to_anchor=(0.5, 1.12),
)
plt.show()

# %%
# What it costs
# -------------
#
# Epsilon = 4 for **each reading**. A home has hundreds of them, and all
# together are protected far less. To hide a home with everything it
# reported, take ``unit_mode=0``: that needs many more homes than
# hours.
#
# Which readings are missing counts as public here.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/completion`: units of privacy, and sensors of different
#   kinds.
# - :doc:`/guarantee`: what is public and what is not.
# - :class:`~sktensor_dp.PrivateCPCompletion`: all parameters.
