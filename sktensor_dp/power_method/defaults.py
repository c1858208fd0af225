"""Tuned constants of components; ``python -m benchmarks ablations_of_components`` tests each."""

# Fractions of the budget. The second moment determines the subspace, and the scale of all
# components.
FRACTIONS = {"second_moments": 0.5, "third_moment_histogram": 0.02, "third": 0.48}
# Fraction of samples whose third moments are clipped: more clipping means less noise and more bias.
CLIPPED = 0.05
