"""Tuned constants of topic kernels; ``python -m benchmarks ablations_of_topics`` tests each."""

# Number of least-squares steps that fit topics to all pairs.
PAIR_STEPS = 3
# Documents with fewer tokens for each of their topics count as having one topic.
TOKENS_OF_TOPIC = 3
