"""Tuned constants of kernels; ``python -m benchmarks ablations_of_completions`` tests each."""

# Prior variances of a unit's level and of its slope on popularity, relative to the noise variance
# of its values, and of its slope on shared effects. Those of components are 1.
LEVEL_VARIANCE = 0.2
POPULARITY_VARIANCE = 0.05
SLOPE_VARIANCE = 0.1
# Singular vectors of where entries are, at most.
VECTORS = 40
