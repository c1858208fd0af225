"""Tuned constants of a fit: budget, start, steps; ``benchmarks ablations_of_mixtures`` has each."""

# Fractions of the budget. Each release of mixture statistics costs the same.
FRACTIONS = {"second_moments": 0.05, "mixture_statistics": 0.83, "mixture_gains": 0.12}
# Constant coordinate in second moments, in radii, by which they show the mean, too.
OFFSET = 0.5
# Number of spare groups in the start and the first quarter of the steps: groups with shapes of
# their own may find what merged spheres miss.
SPARE = 2
# Number of spheres in the start for each group, and of EM steps of spheres.
SPHERES, SPHERE_STEPS = 4, 5
# Rows times mu, for each group and column, that pay for one EM step; the first pays for the fewest.
ROWS_A_STEP = 12.0
# Quantile of the length of normal rows at which statistics are clipped; of EM steps the least one.
QUANTILE = 0.9
