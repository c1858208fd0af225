"""Tuned constants of kernels; ``python -m benchmarks ablations_of_completions`` tests each."""

# Prior variances, relative to the noise variance of a unit's values, of its level (a median, where
# released levels tell more), its slope on popularity, and its slope on shared effects. Components
# have prior variance 1. EM for biases of released sums starts from that of the level.
LEVEL_VARIANCE = 0.2
POPULARITY_VARIANCE = 0.05
SLOPE_VARIANCE = 0.1
# Largest number of singular vectors of the pattern of entries.
VECTORS = 40
