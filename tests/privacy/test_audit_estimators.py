"""Every estimator can be audited on its worst data, and a fit that is sabotaged is caught.

Confidence 1 - 5e-7, and as much for chance in what has to be found: a test fails in one run
of a million, whatever the seed.
"""

import pytest
from cases import MODELS, READERS, plain

from sktensor_dp import PrivateCountVectorizer
from sktensor_dp.privacy.audit import audit, worst_case

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings("ignore::UserWarning")]

SURE = 1 - 5e-7
# Of pairs of letters the worst texts have many.
LEFT_OUT = ("components, tensor", "words, given", "words, characters", "search")
NAMES = [
    *(name for name in READERS if name not in LEFT_OUT),
    *("topics, word space", "components, all dimensions", "components, each step"),
    *("mixtures, diagonal", "Tucker", "CP, values", "CP, gradients", "Tucker, output"),
]


@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_has_worst_neighbours_a_statistic_and_a_claim(name):
    """So few runs refute nothing: ``python -m benchmarks audit`` makes hundreds of each."""
    model = plain(name, payer="none").build()
    case = worst_case(model, 200 if MODELS[name].family in ("counts", "samples", "texts") else None)
    result = audit(model, case.data, case.neighbour, n_runs=8, statistic=case.statistic)
    assert result.epsilon_claim == pytest.approx(model.epsilon)
    assert result.mu_claim is None or result.mu_claim > 0


@pytest.mark.parametrize(("halve", "n_runs"), [(False, 100), (True, 350)])
def test_half_the_noise_of_a_fit_is_caught(halve, n_runs, request):
    """A vocabulary of two words, far from the threshold; mu of its release is 2.718.

    With half the noise .0033 of the runs are on the wrong side: all but 5e-7 of the pairs of
    counts of 350 runs show more than it.
    """
    if halve:
        request.getfixturevalue("half_noise")
    model = PrivateCountVectorizer(max_words_per_document=1, epsilon=10.0, delta=0.01, min_df=0)
    case = worst_case(model, 40)
    mu = model.fit(*case.data).privacy_report_.rows[-1].mu
    # One document of 21 and 19 changes sides: from -2 to 0.
    result = audit(model, case.data, case.neighbour, n_runs=n_runs, statistic=case.statistic,
                   threshold=-1.0, confidence=SURE)  # fmt: skip
    assert (result.mu_lower > mu) == halve
