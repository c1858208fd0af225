"""Tuned constants of topic kernels; ``python -m benchmarks ablations_of_topics`` tests each."""

# Number of least-squares steps that fit topics to all pairs.
PAIR_STEPS = 3
# With noise, EM steps start from topics of pairs moved towards their mean by this fraction: steps
# hardly give words back to topics that have nearly none of them.
START_BLUR = 0.4
# Prior deviation, in intervals of shares, of how much of all others together a topic may hold.
MIXING = 0.2
# Documents with fewer tokens than topics and one more count as having one topic if they are
# expected to mix fewer than two, or have fewer tokens than this for each that they mix.
TOKENS_OF_TOPIC = 3
# Strength of topics that forecasts assume: the eigenvalue of pairs of the topic of rank r, times r
# and 1 plus the concentration, relative to the sum of squared word frequencies that they assume.
# The benchmark ``forecasts`` measures it, as the median of five collections.
STRENGTH = 1.8
# Forecasts assume that documents of this many tokens have half the concentration of long ones.
HALF_MIXED = 20.0
# Deviations of the logarithms of such strengths over collections, and beside that of topics of one
# collection; and the strength by which EM steps confirm a topic, relative to that by which pairs of
# words show it for sure. All are of forecasts, and the likeliest for the fits of ``forecasts``.
STRENGTH_SPREAD, TOPIC_SPREAD, CONFIRMED = 0.75, 0.7, 0.5
