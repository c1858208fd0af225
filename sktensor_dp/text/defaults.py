"""Tuned constants of vocabularies; ``python -m benchmarks ablations_of_words`` tests each."""

# Fraction of the budget for votes; the rest is for the buckets of words.
VOTES_FRACTION = 0.78
# A word gets votes if the number in its bucket exceeds this many deviations of noise.
NEEDED = 1.5
# Fraction of the threshold that votes of full documents may add up to for a common word.
AIM = 0.7
