"""Wrong arguments of published functions are refused by a message that names them."""

import math

import numpy as np
import pytest
from plain_moments import exact_corpus

from sktensor_dp import published

CUBE = np.argwhere(np.ones((3, 4, 5)))
COUNTS = {"X": exact_corpus(), "n_components": 2}
WORDS = {"words": [[0, 1, 2], [2, 1, 0]], "n_features": 3, "n_components": 2}
TENSOR = {"T": np.zeros((2, 2, 2)), "n_components": 1}
STREAM = {"batches": [np.ones((3, 2))] * 40, "n_components": 1}
ENTRIES = {"coordinates": CUBE, "values": np.ones(60), "shape": (3, 4, 5)}
OF_EPSILON = {"epsilon": [(0, "epsilon must be"), (math.nan, "epsilon must be")]}
OF_BUDGET = {**OF_EPSILON, "delta": [(0, "delta must be"), (1, "delta must be")]}
OF_STEPS = {"n_restarts": [(0, "n_restarts must be")], "max_iter": [(1.5, "max_iter must be")]}
OF_TOPICS = {
    **OF_BUDGET,
    "n_components": [(0, "n_components must be"), (5, "at most the 4 features")],
    "X": [(np.zeros((0, 4)), "at least one document"), (-np.ones((3, 4)), "Negative values")],
}
OF_WORDS = {
    **OF_BUDGET,
    "words": [([[0, 1]], r"shape \(n_documents >= 1, 3\)"), ([[0.5, 1, 2]], "integers"),
              ([[0, 1, 3]], "between 0 and")],
    "n_components": [(4, "at most the 3 features of words")],
    "n_features": [(0, "n_features must be")],
}  # fmt: skip
OF_TENSOR = {
    **OF_STEPS,
    "T": [(np.arange(8.0).reshape(2, 2, 2), "T must be symmetric"),
          (np.zeros((2, 3, 2)), "T must have shape"),
          (np.full((2, 2, 2), np.nan), "T must be finite")],
    "n_components": [(3, "at most the 2 features of T"), (0, "n_components must be")],
}  # fmt: skip
OF_ENTRIES = {
    **OF_EPSILON,
    "rank": [(0, "rank must be")],
    "values": [(np.ones(3), "60 finite numbers"), (np.full(60, np.nan), "60 finite numbers")],
    "coordinates": [(CUBE - 1, "at least 0")],
}
WRONG = {
    "agn": (COUNTS, OF_TOPICS),
    "avn": (COUNTS, OF_TOPICS),
    "dp_tpm": (COUNTS, {**OF_TOPICS, **OF_STEPS, "sensitivity": [("entry", "sensitivity must")]}),
    "dp_spectral_lda": (COUNTS, {
        **OF_TOPICS, "X": [(np.ones((2, 4)), "at least 3 documents")],
        "configuration": [(5, "configuration must be")],
        "concentration": [(-1.0, "concentration must be")],
    }),
    "agn_of_words": (WORDS, OF_WORDS),
    "avn_of_words": (WORDS, OF_WORDS),
    "robust_tensor_power_method": (TENSOR, OF_TENSOR),
    "private_tensor_power_method": (TENSOR, {**OF_TENSOR, **OF_BUDGET}),
    "online_tensor_power_method": (STREAM, {
        "batches": [([np.ones((3, 2)), np.ones((3, 4))], r"\(n >= 1, 2\) each, got \(3, 4\)"),
                    ([np.ones((0, 2))], "n >= 1"), ([np.ones(4)], "must have shape"),
                    ([1.0], r"n_features\) each, got \(\)"), ([], "got 0")],
        "n_components": [(3, "at most the 2 features of batches")],
        "eigenvalue": [("best", "eigenvalue must be")],
    }),
    "input_perturbation": (ENTRIES, {**OF_ENTRIES, "bounds": [((1, 0), "bounds")]}),
    "gradient_perturbation": (ENTRIES, {**OF_ENTRIES, "clip": [(0.0, "clip")]}),
    "output_perturbation": (ENTRIES, {**OF_ENTRIES, "lipschitz": [(-1.0, "lipschitz")]}),
}  # fmt: skip


def test_every_published_function_is_in_the_table():
    assert set(WRONG) == set(published.claims())


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named(name):
    right, wrong = WRONG[name]
    for argument, values in wrong.items():
        for value, message in values:
            with pytest.raises(ValueError, match=message):
                getattr(published, name)(**{**right, argument: value})


@pytest.mark.filterwarnings("ignore::sktensor_dp.UnsoundClaimWarning")
def test_a_corpus_that_shows_no_topics_has_no_sensitivity():
    with pytest.raises(ValueError, match="singular value"):
        published.dp_spectral_lda(**COUNTS, configuration=2, epsilon=0.01)
