"""Tuned constants of topic kernels; ``python -m benchmarks ablations_of_topics`` tests each."""

# Least-squares steps that bring topics in line with all pairs.
PAIR_STEPS = 3
# Tokens of each topic with which short documents count as mixing topics.
TOKENS_OF_TOPIC = 3
