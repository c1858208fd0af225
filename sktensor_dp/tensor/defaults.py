"""Tuned constants of kernels; ``python -m benchmarks ablations_of_completions`` tests each."""

# Prior variance of a unit's level, relative to the noise variance of its values; where levels are
# released it is the median of a prior. From it, relative to values, EM for biases of rows starts.
LEVEL_VARIANCE = 0.2
# Prior variance of a unit's slope on popularity, relative to the noise variance of its values.
POPULARITY_VARIANCE = 0.05
# Prior variance of a unit's slope on shared effects.
SLOPE_VARIANCE = 0.1
# Largest number of singular vectors of the pattern of entries.
VECTORS = 40
