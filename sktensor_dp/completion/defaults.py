"""Tuned constants of completions; ``python -m benchmarks ablations_of_completions`` tests each."""

# Number of releases of the biases of a mode if persons are the units, each about the biases so far.
ROUNDS = 6
# Least weight of a row in releases of biases, over that of the row that weighs most. With it
# the best ten of MovieLens' films have .98 of the recall of popularity, .95 without; errors hardly
# change.
LEAST_ROW_WEIGHT = 0.5
# Fraction of the budget for biases that would tell how persons compare rows if all modes had few;
# each mode of few rows gets an equal part of it. About this fraction of the search's releases may
# pay for them, too, in whole releases.
CONCURRENCE_FRACTION = 0.15
# Prior scale of the logarithm of the ratio of effects of medians to effects of means, where values
# of all persons vary; also of the part of effects that a release misses where persons have entries
# in a part of the rows alone.
PULL_SCALE = 0.1
# Fraction of the budget for the level and the deviation of persons' values in fits that search for
# components. The first release of levels gets half of it, and the second one the other half, or
# without a search three times that. With pure noise, without a search, each of the two gets half of
# the root of what they have with Gaussian noise.
LEVEL_FRACTION = 0.02
# Fraction of the budget for components of persons, and the number of releases.
DIRECTION_FRACTION = 0.9
DIRECTION_SWEEPS = 24
# Fraction of these releases after which components must gain more than biases would; otherwise the
# rest pays for biases and levels.
DIRECTION_TRIAL = 3 / 8
# Variance that each component is assumed to explain in a search, relative to that of values.
COMPONENT_VARIANCE = 0.1
# Largest relative increase of the expected prediction error by releasing products of pairs.
PAIR_LOSS = 0.002
# A direction is kept if its eigenvalue exceeds that of chance by this many deviations of noise, and
# by the largest eigenvalue of noise alone.
CERTAIN = 3.0
