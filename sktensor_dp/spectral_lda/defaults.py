"""Tuned constants of topics; ``python -m benchmarks ablations`` tests each."""

# Fractions of the budget of few words, many words, and the published methods: EM steps of many
# words get what is left; a held-out test against public topics its own.
FRACTIONS = {
    "small": {"norm_histogram": 0.02, "word_frequencies": 0.03, "pairs": 0.82, "triples": 0.13,
              "held_out_scores": 0.02},
    "large": {"norm_histogram": 0.02, "word_frequencies": 0.10, "pairs": 0.25, "triples": 0.05,
              "held_out_scores": 0.02},
    "moment": {"norm_histogram": 0.02, "word_frequencies": 0.08, "pairs": 0.45, "triples": 0.45,
               "held_out_scores": 0.02},
}  # fmt: skip
# Most words whose moments are fitted jointly.
JOINT_WORDS = 256
# Effective documents (n mu) for each probability sought from which moments are fitted jointly.
MATCH_FROM = 4.0
# Effective documents that each word of the released pairs needs.
DOCUMENTS_PER_WORD = 12.0
# EM steps with noise.
STEPS = 6
# EM steps without noise of one topic each, and as many of mixtures.
EXACT_STEPS = 12
# Part of a step's release that repeats the topics it was given, and is taken off.
ECHO = 0.3
# Power of a word's frequency that its expected counts are divided by.
SCALE_POWER = 0.25
# Clip of expected counts over that of counts.
STEP_LIMIT = 0.5
