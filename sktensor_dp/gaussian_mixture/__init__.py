"""Private Gaussian mixtures of any shape."""

from sktensor_dp.gaussian_mixture.estimator import PrivateGaussianMixture

__all__ = ["PrivateGaussianMixture"]
