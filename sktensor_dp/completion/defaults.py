"""Tuned constants of completions; ``python -m benchmarks ablations_of_completions`` tests each."""

# Releases of biases where people are the units, each about those before.
ROUNDS = 4
# Fraction of a person-level budget for the level and deviation of values.
LEVEL_FRACTION = 0.01
# Fraction for directions, and in how many releases.
DIRECTION_FRACTION = 0.9
DIRECTION_SWEEPS = 24
# Fraction of these after which components must show, or biases get the rest.
DIRECTION_TRIAL = 3 / 8
# Variance of a component that fits start from, relative to that of values.
COMPONENT_VARIANCE = 0.1
# Largest expected loss of predictions that pairs may cost.
PAIR_LOSS = 0.002
# Significance level of a direction: deviations of noise that what it explains must exceed.
CERTAIN = 3.0
