"""Kernels of gaussian_mixture: numpy and scipy only, with no notion of privacy."""
