"""Tuned constants of mixtures; ``python -m benchmarks ablations_of_mixtures`` tests each."""

# Fractions of the budget. All steps, of the spheres of the start and of the groups, cost the same;
# gains are asked for twice: how many groups there are, and whether steps helped.
FRACTIONS = {"second_moments": 0.1, "mixture_statistics": 0.82, "mixture_gains": 0.08}
# Constant coordinate of second moments, in radii: the mean is read off it.
OFFSET = 0.5
# Spheres of the start for each group asked for, and the least number; and their steps.
SPHERES, LEAST_SPHERES, SPHERE_STEPS = 4, 12, 5
# Quantile of the length of normal rows that spheres, and steps, clip at.
SPHERE_QUANTILE, QUANTILE = 0.95, 0.9
# Scales of weights, shifts and shapes in steps, over those by which their noise costs alike.
WEIGHT, SHIFT, SHAPE = 2.0, 1.0, 0.3
# Power of its number that a step weighs in the average.
POWER = 2.0
# Log-density a row, in nats, that another group must gain.
LEAST_GAIN = 0.01
