"""Kernels of Gaussian mixtures: numpy and scipy only, with no notion of privacy."""
