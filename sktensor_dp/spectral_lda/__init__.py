"""Latent Dirichlet allocation by private moments."""

from sktensor_dp.spectral_lda.estimator import PrivateSpectralLDA

__all__ = ["PrivateSpectralLDA"]
