"""Tuned constants of noise, clips and tails; ``benchmarks ablations_of_mixtures`` has each."""

# Largest noise of a variance, over its sampling error, up to which squares are clipped later.
NOISE_OF_SQUARES = 0.5
# Noise of a shape (operator norm) from which covariances keep `shrinkage.LEAST_KEPT`.
LARGE_NOISE = 0.4
# Clip of the norm of the gains in log-density of one sample, in nats: of groups a few deviations
# apart most samples gain less.
MOST_GAIN = 1.5
# Probability a priori that a column is normal within groups.
NORMAL = 0.9
# Expected deviation of logs from which means of groups have no intervals: by longer tails fits find
# other groups than there are, and no width would be right.
LIKELY = 0.65
