"""
How do I complete a table with three dimensions: shops, products, weeks?
========================================================================

Give each sale figure its three coordinates and fit
:class:`~sktensor_dp.PrivateTuckerCompletion`. It finds patterns that
shops, products and weeks share, and predicts the cells that nobody
reported.
"""

# %%
# Sales of a year
# ---------------
#
# Sixty shops report weekly sales of forty products to their
# association. Four of ten cells are missing, and no shop wants a
# competitor to read its figures. The figures are made up: some products
# sell in summer, some in winter, and some before Christmas.

import numpy as np

N_SHOPS, N_PRODUCTS, N_WEEKS = 60, 40, 52

rng = np.random.default_rng(0)
week = np.arange(N_WEEKS)
season = np.array(
    [
        -np.cos(2 * np.pi * (week - 3) / 52),  # summer
        np.cos(2 * np.pi * (week - 3) / 52),  # winter
        np.where(week >= 46, 2.0, -0.2),  # Christmas
    ]
)
product = np.sort(rng.integers(3, size=N_PRODUCTS))
shop = rng.uniform(0.3, 1.7, size=(N_SHOPS, 3))
sales = 50 + 14 * shop[:, product, None] * season[product]
sales += 4 * rng.standard_normal(
    (N_SHOPS, 1, 1)
) + 3 * rng.standard_normal(sales.shape)

seen = rng.random(sales.shape) < 0.6
X, y = np.argwhere(seen), sales[seen]
print(
    f"{len(y):,} figures. The first: shop, product, week {X[0]} "
    f"sold {y[0]:.0f} pieces"
)

# %%
# Complete the table
# ------------------
#
# One figure is the unit of privacy: **epsilon** limits how much anyone
# can learn about it. At epsilon = 3, odds that a figure was one number
# rather than another change by a factor of at most 20. ``bounds`` is
# the public range of a figure; larger ones are clipped to it.
#
# A Tucker model describes each shop, each product and each week by
# three numbers, and lets all of them interact. Noise goes to every
# figure once, and is averaged out by finding the few numbers that
# explain most.

from sktensor_dp import PrivateTuckerCompletion

model = PrivateTuckerCompletion(
    rank=3, bounds=(0, 100), shape=sales.shape, epsilon=3.0
)
model.fit(X, y)
print(model.privacy_report_)

completed = model.complete()
error = np.sqrt(np.mean((completed - sales)[~seen] ** 2))
print(
    f"\nmissing figures are off by {error:.1f} pieces; "
    f"they vary by {sales[~seen].std():.1f},"
)
print("3 of which nobody could predict: they are chance")

# %%
# The picture shows one shop: a line for each product, a column for each
# week. Cells that were not reported are black in the middle panel.

import matplotlib.pyplot as plt

where = int(np.argmax(shop.sum(axis=1)))
panels = {
    "really sold": sales[where],
    "reported": np.where(seen[where], sales[where], np.nan),
    "completed": completed[where],
}
figure, axes = plt.subplots(
    1, 3, figsize=(6.8, 3.4), sharey=True, layout="constrained"
)
for axis, (title, panel) in zip(axes, panels.items(), strict=True):
    axis.set_facecolor(
        "black"
    )  # shows through where nothing was reported
    image = axis.imshow(
        panel, cmap="cividis", vmin=20, vmax=80, aspect="auto"
    )
    axis.set(title=title, xlabel="week")
axes[0].set_ylabel("product")
figure.colorbar(image, ax=axes, label="pieces a week", shrink=0.9)
plt.show()

# %%
# What it costs
# -------------
#
# Epsilon = 3 for **each figure**. A shop with two thousand figures is
# protected in each of them and hardly in all together. To hide a shop
# with everything it reported, take ``unit_mode=0``, and many more
# shops.
#
# Which cells are missing is public.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/completion`: CP or Tucker, what gets noise, what to expect.
# - :doc:`/guarantee`: units of privacy.
# - :class:`~sktensor_dp.PrivateTuckerCompletion` and
#   :class:`~sktensor_dp.PrivateCPCompletion`.
