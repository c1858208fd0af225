"""
How do I restore images with missing pixels, and hide each image?
=================================================================

Learn what all images share, with noise, and complete each image from
that where it lies. The model never holds an image.
:class:`~sktensor_dp.PrivateCPCompletion` does it with ``unit_mode=0``.
"""

# %%
# Digits with holes
# -----------------
#
# scikit-learn comes with 1,797 handwritten digits of 8 times 8 pixels.
# Two of five pixels are hidden. A table has one row for each visible
# pixel: the number of the image, the place of the pixel, and its
# brightness from 0 to 16.

import numpy as np
from sklearn.datasets import load_digits

images = load_digits().data
rng = np.random.default_rng(0)
visible = rng.random(images.shape) >= 0.4

X, y = np.argwhere(visible), images[visible]
print(f"{images.shape[0]} images, {len(y):,} visible pixels")

# %%
# What images share
# -----------------
#
# The whole image is the unit of privacy: somebody's handwriting.
# **Epsilon** limits how much the model may tell about one of them.
# Whoever suspects that an image is yours rather than another's may
# change their odds by a factor of at most e to the power of epsilon.
#
# The model finds eight typical patterns of strokes. 1,797 images are
# few, so that takes a large epsilon: 5 here.

from sktensor_dp import PrivateCPCompletion

model = PrivateCPCompletion(
    rank=8,
    bounds=(0, 16),
    shape=images.shape,
    unit_mode=0,
    epsilon=5.0,
)
model.fit(X, y)
print(model.privacy_report_.guarantee)

# %%
# Complete each image where it lies
# ---------------------------------
#
# ``fold_in`` looks at the visible pixels of the images it is given, and
# finds how much of each pattern they hold. It keeps nothing.

hidden = np.argwhere(~visible)
restored = images.copy()
restored[~visible] = model.fold_in(X, y).predict(hidden)

by_mean = images.copy()
by_mean[~visible] = model.predict(hidden)


def error(completed):
    return np.sqrt(np.mean((completed - images)[~visible] ** 2))


print(
    f"error of hidden pixels: {error(by_mean):.1f} of 16 by the mean,"
)
print(f"and {error(restored):.1f} by the patterns")

import matplotlib.pyplot as plt

rows = {
    "original": images,
    "given": np.where(visible, images, np.nan),
    "average image": by_mean,
    "restored": restored,
}
figure, axes = plt.subplots(
    len(rows), 9, figsize=(6.6, 3.4), layout="constrained"
)
for line, (name, pictures) in zip(axes, rows.items(), strict=True):
    for axis, picture in zip(line, pictures, strict=False):
        axis.set_facecolor(
            "#FFBC79"
        )  # shows through where a pixel is hidden
        axis.imshow(
            picture.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16
        )
        axis.set(xticks=[], yticks=[])
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
plt.show()

# %%
# What it costs
# -------------
#
# Epsilon = 5 for each image of the 1,797, once. That is a weak promise
# on its own. Ten times as many images would do as well with a much
# smaller epsilon, as noise stays and signal grows. Images folded in
# later cost nothing: what they give belongs to whoever holds them.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/completion`: pixels or images as units, and what to expect.
# - :doc:`/guarantee`: what is public here, the number of images for
#   one.
# - :class:`~sktensor_dp.PrivateCPCompletion`: all parameters.
