"""Tuned constants of completions; ``python -m benchmarks ablations_of_completions`` tests each."""

# Releases of biases where people are the units, each about those before.
EFFECT_ROUNDS = 4
# Clip of residuals for biases, in deviations of values.
EFFECT_CLIP = 0.25
# Fraction of a person-level budget for the level and deviation of values.
LEVEL_FRACTION = 0.01
# Fraction for shared factors of three modes or more.
FACTOR_FRACTION = 0.6
# Fraction for the directions of a matrix, and in how many releases.
DIRECTION_FRACTION = 0.9
DIRECTION_SWEEPS = 24
# Fraction of these after which components must show, or biases get the rest.
DIRECTION_TRIAL = 3 / 8
# Clip of residuals for directions, in deviations of values.
DIRECTION_CLIP = 3.0
# Variance of a component that fits start from, relative to that of values.
COMPONENT_VARIANCE = 0.1
# Clip of residuals in products of pairs, in deviations of values about the model.
PAIR_CLIP = 0.5
# Largest expected loss of predictions that pairs may cost.
PAIR_LOSS = 0.002
# Power of the number of entries by which row sums beside pairs are weighted.
PAIR_POWER = 2 / 3
