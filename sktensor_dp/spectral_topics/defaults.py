"""Tuned constants of fits of topics; ``python -m benchmarks topics`` and ``laws`` measure them."""

# Fractions of the budget of few words, many words, and the published methods; EM steps of many
# words get what is left.
FRACTIONS = {
    "small": {"norm_histogram": 0.02, "word_frequencies": 0.03, "pairs": 0.82, "triples": 0.13},
    "large": {"norm_histogram": 0.02, "word_frequencies": 0.10, "pairs": 0.25, "triples": 0.05},
    "moment": {"norm_histogram": 0.02, "word_frequencies": 0.08, "pairs": 0.45, "triples": 0.45},
}
# Fraction for EM steps beside moments that are fitted jointly: asked for, and kept in reserve.
STEPS_FRACTION, RESERVED_FRACTION = 0.53, 0.1
# Fraction for each held-out question.
QUESTION_FRACTION = 0.02
# Words up to which all moments are fitted jointly, where effective documents (n mu) are so many
# times the probabilities sought; EM steps are kept in reserve from so many times.
JOINT_WORDS, MATCH_FROM, RESERVE_FROM = 256, 4.0, 100.0
# Share of the second moment's structure that may stay unexplained before EM steps are made.
MISFIT = 0.2
# Most words whose pairs are released, and effective documents that each word needs.
MAX_WORDS, DOCUMENTS_PER_WORD = 1500, 12.0
# EM steps: with noise, with pure noise, in reserve; without noise of one topic each, and mixed.
STEPS, PURE_STEPS, RESERVED_STEPS, SINGLE_STEPS, MIXED_STEPS = 6, 2, 15, 12, 12
# Part of the EM steps before the held-out question.
SURE_PART = 1 / 3
# Effective documents for each topic below which the documents of a group are joined.
JOINED_BELOW = 200.0
# Part of a step's release that repeats the topics it was given, and is taken off.
ECHO = 0.3
# Expected counts of a word are divided by this power of its frequency; their limit over that on
# counts.
SCALE_POWER, STEP_LIMIT = 0.25, 0.5
# Part of the word frequencies in topics that EM steps start from.
START_MIX = 0.1
