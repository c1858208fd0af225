"""Every estimator can be audited on its worst data, and a fit that is sabotaged is caught.

Confidence 1 - 5e-7, and as much for chance in what has to be found: a test fails in one run
of a million, whatever the seed.
"""

from typing import Any

import pytest

from sktensor_dp import (
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)
from sktensor_dp.privacy.audit import audit, worst_case

pytestmark = pytest.mark.nightly

SURE = 1 - 5e-7


def completion(model: Any, delta: float, **parameters: Any) -> Any:
    options = {"shape": (1, 1), "epsilon": 1.0, "random_state": 0, **parameters}
    return model(1, bounds=(0, 1), delta=delta, **options)


def power_method(kind: str, **parameters: Any) -> Any:
    return PrivateTensorPowerMethod(
        1, data_norm=1.0, perturbation=kind, whiten=kind == "whitened_tensor", random_state=0,
        **parameters,
    )  # fmt: skip


def topics(**parameters: Any) -> Any:
    return PrivateSpectralLDA(1, random_state=0, **parameters)


ESTIMATORS = {
    "LDA": topics(),
    "LDA, one refinement": topics(n_refinements=1),
    "LDA, moment tensor": topics(perturbation="moment_tensor"),
    "mixture": PrivateGaussianMixture(1, data_norm=1.0, random_state=0),
    "vocabulary": PrivateCountVectorizer(max_words_per_document=2, min_df=0),
    "power method, whitened tensor": power_method("whitened_tensor"),
    "power method, moment tensor": power_method("moment_tensor"),
    "power method, iteration": power_method("iteration"),
    "power method, stream": power_method("stream", max_iter=1),
    **{
        f"{model.__name__}, {kind}": completion(model, 0, perturbation=kind)
        for model in (PrivateCPCompletion, PrivateTuckerCompletion)
        for kind in ("input", "sufficient_statistics", "output")
    },
    "CP, gradient": completion(PrivateCPCompletion, 1e-6, perturbation="gradient", max_iter=1),
    "CP, slices": completion(PrivateCPCompletion, 1e-6, unit_mode=0, shape=(20, 2)),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_has_worst_neighbours_a_statistic_and_a_claim(name):
    """So few runs refute nothing: ``python -m benchmarks audit`` makes hundreds of each."""
    model = ESTIMATORS[name]
    case = worst_case(model, None if name.startswith(("CP", "Private")) else 200)
    result = audit(model, case.data, case.neighbour, n_runs=8, statistic=case.statistic)
    assert result.epsilon_claim == pytest.approx(1.0)
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
