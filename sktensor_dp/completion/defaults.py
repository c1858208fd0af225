"""Tuned constants of completions; ``python -m benchmarks ablations_of_completions`` tests each."""

# Number of releases of biases if persons are the units, each about the biases so far.
ROUNDS = 6
# Prior scale of the logarithm of effects of medians over those of means, where all persons vary,
# and of what releases lack of effects where persons keep to a part of the rows.
PULL_SCALE = 0.1
# Fraction of the budget for the level and the deviation of persons' values beside a search for
# components; half of it is for a start, in all fits but of pure noise: there of what levels get.
LEVEL_FRACTION = 0.02
# Fraction of the budget for components of persons, and the number of releases.
DIRECTION_FRACTION = 0.9
DIRECTION_SWEEPS = 24
# Fraction of these releases after which components must show a gain, or biases and levels get the
# rest.
DIRECTION_TRIAL = 3 / 8
# Prior variance of a component at the start of a fit, relative to the variance of values.
COMPONENT_VARIANCE = 0.1
# Largest expected increase of the prediction error that pairs may cause.
PAIR_LOSS = 0.002
# A direction is significant if it explains more than noise by this many standard deviations.
CERTAIN = 3.0
