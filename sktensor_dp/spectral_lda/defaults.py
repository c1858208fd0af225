"""Tuned constants of topics; ``python -m benchmarks ablations`` tests each."""

# Fractions of the budget for few words, many words, and third moments in the space of words. For
# many words EM steps get the rest. Shares by group are a release of their own; its histogram finds
# the few persons who write most.
FRACTIONS = {
    "few_words": {
        "norm_histogram": 0.02, "word_frequencies": 0.03, "pair_moments": 0.82,
        "whitened_triple_moments": 0.13,
    },
    "many_words": {
        "norm_histogram": 0.02, "word_frequencies": 0.10, "pair_moments": 0.25,
        "whitened_triple_moments": 0.05,
    },
    "word_space": {
        "norm_histogram": 0.02, "word_frequencies": 0.08, "pair_moments": 0.45,
        "triple_moments": 0.45,
    },
    "shares_by_group": {"norm_histogram": 0.2, "topic_shares": 0.8},
}  # fmt: skip
# Where moments are fitted jointly, N_CLIPPED effective documents (n mu) are clipped, at most the
# fraction CLIPPED of all: the fraction falls with the noise, so that estimates converge. A limit
# released for third moments clips CLIPPED of all: more would break identities between the moments.
CLIPPED, N_CLIPPED = 0.05, 500.0
# Otherwise units are clipped at this quantile of their norms: noise is less, and bias more.
LOW_QUANTILE = 0.1
# Largest number of words whose moments are fitted jointly.
JOINT_WORDS = 256
# Moments are fitted jointly from this many effective documents (n mu) on for each probability of
# the model.
MATCH_FROM = 4.0
# Number of effective documents (n times the mu of pairs) for each word whose pairs are released.
DOCUMENTS_PER_WORD = 12.0
# Number of EM steps with noise.
STEPS = 6
# Number of EM steps without noise of one topic a document, and then of mixtures.
EXACT_STEPS = 12
# Counts lean to the topics that a step was given: this fraction of them is taken for a copy of
# these, and subtracted.
ECHO = 0.3
# Expected counts of a word are divided by this power of its frequency.
SCALE_POWER = 0.25
# Clip of expected counts relative to that of counts, with Gaussian noise and no joint fit.
STEP_LIMIT = 0.5
