"""Tuned constants of vocabularies; ``python -m benchmarks ablations_of_words`` tests each."""

# Fraction of the budget for votes; the rest is for words by a checksum of theirs.
VOTES_FRACTION = 0.78
# Deviations of the checksum's numbers that a word needs to get votes.
NEEDED = 1.5
# Fraction of the threshold that votes of full documents may reach for a common word.
AIM = 0.7
