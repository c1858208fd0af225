"""Kernels of topic models: numpy and scipy only, with no notion of privacy."""
