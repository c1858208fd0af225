"""
How do I learn from a stream that is read once?
===============================================

Hand each batch to ``partial_fit`` and forget it. The whole stream costs
as much privacy as one batch, because every sample is read once.
"""

# %%
# A stream that is never stored
# -----------------------------
#
# Phones send forty numbers each, once. Three patterns are behind them:
# every phone shows one of the three, the first more often than the
# others, and some noise of its own. We want the patterns. Nobody wants
# to store the numbers.

import numpy as np

rng = np.random.default_rng(0)
patterns = np.linalg.qr(rng.standard_normal((40, 3)))[0].T


def batch(n_phones=20_000):
    X = 0.7 * patterns[rng.choice(3, size=n_phones, p=[0.5, 0.3, 0.2])]
    return X + 0.5 / np.sqrt(40) * rng.standard_normal((n_phones, 40))


# %%
# One step for each batch
# -----------------------
#
# **Epsilon** is the privacy parameter: whoever suspects that your phone
# sent certain numbers rather than others may change their odds by a
# factor of at most e to its power. ``data_norm`` is the public length
# to which longer samples are scaled down.
#
# Every batch makes one noisy step towards a pattern. When a pattern is
# found, the next steps look for the next one. Until all are found the
# fit warns that it is not complete. That is no news here, so these
# warnings are silenced.

import warnings

from sktensor_dp import NotEnoughDataWarning, PrivateTensorPowerMethod

model = PrivateTensorPowerMethod(
    3, epsilon=1.0, data_norm=1.0, perturbation="stream"
)
likeness = []
while not getattr(model, "is_complete_", False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        model.partial_fit(batch())
    likeness.append(np.abs(patterns @ model.components_.T).max(axis=1))

print(f"{model.n_batches_seen_} batches were needed")
print(model.privacy_report_.guarantee)

# %%
# Likeness is the cosine of the angle between a pattern and the nearest
# one found: 1 means the same. The patterns are found one after the
# other.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
n_batches = np.arange(1, len(likeness) + 1)
names = ["first pattern", "second pattern", "third pattern"]
lines = zip(
    names,
    np.transpose(likeness),
    ["C0", "C5", "C3"],
    "osv",
    strict=True,
)
for name, curve, colour, mark in lines:
    axis.plot(
        n_batches,
        curve,
        mark + "-",
        color=colour,
        markersize=4,
        label=name,
    )
axis.set(
    xlabel="batches read",
    ylabel="likeness of the nearest one found",
    ylim=(0, 1.05),
)
axis.grid(axis="y", color="0.9")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="lower right")
plt.show()

# %%
# Between batches the model holds released values only. It may be saved,
# sent on, and go on with the next batch elsewhere.
#
# What it costs
# -------------
#
# Epsilon = 1 for each phone, however many batches come. You answer for
# one thing: that no phone is in two batches.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/components`: streams, and when to use them.
# - :doc:`/budget`: several fits on the same people.
# - :class:`~sktensor_dp.PrivateTensorPowerMethod`: ``partial_fit`` and
#   all parameters. :class:`~sktensor_dp.PrivateSpectralLDA` reads
#   streams of texts in the same way.
