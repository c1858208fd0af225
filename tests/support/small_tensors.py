"""Frames, cells and measures that tests of tensor kernels share."""

import numpy as np


def random_frame(dim, n_components, rng):
    return np.linalg.qr(rng.standard_normal((dim, n_components)))[0].T


def rms(x):
    return np.sqrt(np.mean(x**2))


def everything(shape):
    return np.column_stack(np.unravel_index(np.arange(np.prod(shape)), shape))
