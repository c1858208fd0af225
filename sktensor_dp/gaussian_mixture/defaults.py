"""Tuned constants of mixtures; ``python -m benchmarks ablations_of_mixtures`` tests each."""

# Fractions of the budget. Each EM step, of spheres or of groups, costs the same.
FRACTIONS = {"second_moments": 0.05, "mixture_statistics": 0.83, "mixture_gains": 0.12}
# Constant coordinate in second moments, in radii; it shows the mean.
OFFSET = 0.5
# Groups beyond those asked for, of the start and of the first quarter of the steps: what merged
# spheres miss, groups with a shape of their own find.
SPARE = 2
# Number of spheres of the start for each group, and of their EM steps.
SPHERES, SPHERE_STEPS = 4, 5
# Rows times mu, for each group and column, for one further EM step.
ROWS_A_STEP = 12.0
# Quantile of the length of normal rows at which statistics are clipped.
QUANTILE = 0.9
