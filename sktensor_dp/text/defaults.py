"""Tuned constants of vocabularies; ``python -m benchmarks ablations_of_words`` tests each."""

# Fraction of the budget for votes; the rest is for the buckets of words.
VOTES_FRACTION = 0.78
# A word gets votes if the number in its bucket exceeds this many deviations of noise.
NEEDED = 1.5
# Fraction of the threshold that votes of full documents may add up to for a common word.
AIM = 0.7
# Of forecasts: deviation of the logarithms of numbers of distinct words of documents. It was 0.8 in
# news and documentation, 1.2 in posts, 1.7 in all posts of persons.
SPREAD = 1.0
# Forecasts assume a fraction COMMON / (r + OFFSET) of documents with the word of rank r, OFFSET 20
# (Zipf-Mandelbrot); half to four times as many words as forecast were kept.
COMMON = 9.4
