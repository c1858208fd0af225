"""
How do I find clusters of customers and keep each customer private?
===================================================================

Fit a mixture of Gaussians with
:class:`~sktensor_dp.PrivateTensorPowerMethod`. It finds the centre, the
size and the spread of each cluster from two noisy averages over all
customers.
"""

# %%
# Fifty thousand customers
# ------------------------
#
# Each has four numbers, on a scale where 0 is ordinary and 1 is one
# step up or down. The customers are made up, from four clusters of
# different size.

import numpy as np

FEATURES = [
    "visits a month",
    "spent per visit",
    "share bought online",
    "years as a customer",
]
CENTRES = np.array(
    [
        [-2.5, 2, 2, -1],
        [3, -2.5, -1, 2],
        [1, 2.5, -2.5, 1],
        [-2, -2, 0.5, -2],
    ]
)

rng = np.random.default_rng(0)
cluster = rng.choice(4, size=50_000, p=[0.4, 0.3, 0.2, 0.1])
spread = np.array([0.8, 1, 0.7, 0.9])[cluster]
X = CENTRES[cluster] + spread[:, None] * rng.standard_normal(
    (50_000, 4)
)

# %%
# Say how large a customer may be
# -------------------------------
#
# Noise has to hide the most unusual customer there could be.
# ``data_norm`` says how far from the origin that is; whoever is farther
# is moved in. Choose it from what you know of the scale, not from the
# data, because it is public. Here: all four numbers at most 3 or 4 in
# size, so a norm of 7.
#
# **Epsilon** is the privacy parameter. Whoever suspects that a customer
# has certain numbers rather than others may change their odds by a
# factor of at most e to the power of epsilon: 2.7 for epsilon = 1.

from sktensor_dp import PrivateTensorPowerMethod

mixture = PrivateTensorPowerMethod(
    4, moment="gaussian_mixture", data_norm=7.0, epsilon=1.0
)
print(mixture.forecast(*X.shape))

# %%
# Enough customers. So fit:

mixture.fit(X)
order = np.argsort(-mixture.weights_)
print(mixture.privacy_report_.guarantee)

# %%
# The centres are in ``components_``, shares in ``weights_``, spreads in
# ``covariances_``:

for place, j in enumerate(order, start=1):
    centre = ", ".join(
        f"{value:+.1f}" for value in mixture.components_[j]
    )
    share, sd = mixture.weights_[j], np.sqrt(mixture.covariances_[j])
    print(
        f"cluster {place}: {share:4.0%} of customers, "
        f"centre ({centre}), spread {sd:.1f}"
    )

# %%
# The picture
# -----------
#
# Dots are customers, which only their holder can draw. Circles are what
# was released: the centre of each cluster, and two standard deviations
# around it.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

LABEL = {
    "boxstyle": "circle",
    "facecolor": "white",
    "edgecolor": "C5",
    "pad": 0.2,
}
turn = np.linspace(0, 2 * np.pi, 100)
figure, axes = plt.subplots(
    1, 2, figsize=(6.8, 3.7), layout="constrained"
)
for axis, (across, up) in zip(axes, [(0, 1), (2, 3)], strict=True):
    axis.plot(
        X[:2000, across],
        X[:2000, up],
        ".",
        color="C0",
        alpha=0.25,
        markersize=3,
    )
    for place, j in enumerate(order, start=1):
        x, y = mixture.components_[j, [across, up]]
        reach = 2 * np.sqrt(mixture.covariances_[j])
        axis.plot(
            x + reach * np.cos(turn),
            y + reach * np.sin(turn),
            color="C5",
        )
        axis.text(x, y, place, ha="center", va="center", bbox=LABEL)
    axis.set(
        xlabel=f"{FEATURES[across]} (steps)",
        ylabel=f"{FEATURES[up]} (steps)",
        xlim=(-6.5, 6.5),
        ylim=(-6.5, 6.5),
    )
    axis.set_aspect("equal")
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# ``transform`` tells for any customer how likely each cluster is. Its
# answer is about that customer, and is not protected:

print(
    mixture.transform(np.array([[-2, 2, 2, -1], [0, 0, 0, 0]]))[
        :, order
    ].round(2)
)

# %%
# What it costs
# -------------
#
# Epsilon = 1 for each customer. The forecast before was free. There can
# be at most as many clusters as there are features, and each is round:
# equally wide in all directions.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/components`: mixtures, other third moments, and
#   ``data_norm``.
# - :doc:`/tuning`: choosing ``data_norm`` or the number of clusters
#   privately.
# - :class:`~sktensor_dp.PrivateTensorPowerMethod`: all parameters.
