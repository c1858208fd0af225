"""Tuned constants of kernels; ``python -m benchmarks ablations_of_completions`` tests each."""

# Prior variances of a unit's parameters. Of its level, relative to the noise variance of its values
# (the median of a prior, where released levels tell more); EM for biases of rows starts from it.
LEVEL_VARIANCE = 0.2
# Of its slope on popularity, also relative to the noise variance.
POPULARITY_VARIANCE = 0.05
# Of its slope on shared effects.
SLOPE_VARIANCE = 0.1
# Largest number of singular vectors of the pattern of entries.
VECTORS = 40
