"""Answers and reports state the noise that they have: laws by cost, deviations, residuals."""

import json
import math
from collections.abc import Iterator

import numpy as np
import pytest
from small_corpora import counts, tiny

from sktensor_dp import (
    PrivacyLeakWarning,
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    unsafe_seeded_noise,
)
from sktensor_dp.privacy.curators.documents import DocumentCurator
from sktensor_dp.privacy.curators.entries import EntryCurator
from sktensor_dp.privacy.mechanisms import (
    Mechanism,
    Piecewise,
    piecewise_deviation,
    spherical_laplace_rows,
)
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.queries.counts import CountChunks, as_counts
from sktensor_dp.queries.entries import EntryChunks
from sktensor_dp.queries.gradients import Jacobian
from sktensor_dp.tensor.symmetric import symmetric_to_coordinates

# Laws of released values of tensors that depend on the cost, or on the value itself.

Z = 4.9  # two-sided 1e-6 point of the normal
SHAPE, PURE = (4, 6, 3), PrivacyCost(epsilon=0.9)


@pytest.fixture
def noise(seed: int) -> Iterator[NoiseSource]:
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        yield NoiseSource()


def curator(name: str, cost: PrivacyCost, n: int = 300) -> EntryCurator:
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.integers(0, size, n) for size in SHAPE])
    plan = ReleasePlan(1.0, 1e-6, (PlannedRelease(name, cost),))
    chunks = EntryChunks(X, rng.uniform(1, 5, n), SHAPE, (1.0, 5.0))
    return EntryCurator(chunks, plan, spender="test", unit="entry", accountant=None)


def test_rows_get_noise_independent_of_each_other(noise):
    """A correlation of 3 % between neighbouring norms of 30,000 fails."""
    norms = np.linalg.norm(spherical_laplace_rows(np.zeros((30_000, 3)), 0.4, 1.7, noise), axis=1)
    assert abs(np.corrcoef(norms[1:], norms[:-1])[0, 1]) < Z / math.sqrt(norms.size)


def test_rows_without_noise_are_returned(noise):
    rows = np.arange(6.0).reshape(2, 3)
    assert noise.spherical_laplace_rows(rows, math.inf) is rows


def test_purely_released_entries_have_the_variance_of_the_piecewise_law(noise):
    noisy = curator("entries", PURE, 3000).entries()
    truth = curator("entries", PrivacyCost(mu=math.inf), 3000).entries().value
    assert noisy.sigma == pytest.approx(4 * piecewise_deviation(0.9))
    variances = [16 * Piecewise(0.9).variance(x / 4) for x in truth]
    white = (noisy.value - truth) / np.sqrt(variances)
    assert abs((white**2).mean() - 1) < Z * math.sqrt(2 / truth.size)


@pytest.mark.parametrize("name", ["entries", "row_sums", "ridge_block", "entry_gradients"])
def test_a_pure_cost_selects_pure_laws_in_any_plan(name, noise):
    asked = curator(name, PURE)
    questions = {
        "entry_gradients": (Jacobian(asked.index_set, [np.ones((n, 1)) for n in SHAPE]),),
        "ridge_block": (0, np.ones((300, 1)), 1.0),
    }
    getattr(asked, name)(*questions.get(name, ()))
    (row,) = asked.report().rows
    assert row.mechanism == CATALOGUE[name].pure.name
    assert (row.epsilon, row.mu) == (0.9, 0.0)


# Noise of third moments of counts has the deviation that a fit reckons with.

K, USES = 3, 400


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("name", ["whitened_triple_moments", "triple_moments"])
@pytest.mark.usefixtures("seeded_noise")
def test_noise_of_triples_has_the_deviation_that_is_told(name, delta, seed):
    rng = np.random.default_rng(seed)
    X = as_counts(rng.poisson(1.0, (50, 8)).astype(float))
    basis = np.linalg.qr(rng.standard_normal((8, K)))[0]
    plan = ReleasePlan.split(1.0, delta, {name: 1.0}, {name: USES})
    known = {"counts": 9.0, "triples": 5.0}
    with DocumentCurator(
        CountChunks(X, *X.shape), plan, known=known, spender="test", unit="document",
        accountant=None,
    ) as curator:  # fmt: skip
        counts = curator.count_clip(0.1)
        if name == "triple_moments":
            clip = counts if delta == 0 else curator.triple_clip(0.1)
            answers = [curator.triples(basis, clip, (counts,), None) for _ in range(USES)]
        else:
            clip = curator.whitened_triple_clip(0.1, basis, None, (counts,))
            answers = [curator.whitened_triples(basis, clip, (counts,), None) for _ in range(USES)]
    values = np.array([symmetric_to_coordinates(answer.value) for answer in answers])
    # Coordinates of spherical noise share their radius: its square deviates by a fifth at most.
    assert values.std(axis=0).mean() == pytest.approx(answers[0].sigma, rel=0.15)


# Reports say where the program's noise is not proved to have the law on the page.

LAWS = [law for e in CATALOGUE.values() for law in (e.gaussian, e.pure) if law is not None]
SAMPLES = np.random.default_rng(0).standard_normal((200, 4))
CELLS = np.argwhere(np.ones((4, 4, 4)))
VALUES = np.random.default_rng(0).random(len(CELLS))
SPHERICAL = "Spherical Laplace noise"


def fits():
    """Of every kind, what its report has to say beside delta, and the fit."""
    lda = {"n_components": 2, "random_state": 0}
    yield None, PrivateSpectralLDA(**lda).fit(counts())
    # Third moments, the only ones with spherical noise, are of the published method.
    yield None, PrivateSpectralLDA(**lda, delta=0.0).fit(counts())
    yield SPHERICAL, PrivateSpectralLDA(**lda, delta=0.0, n_refinements=0).fit(counts())
    words = {**lda, "perturbation": "moment_tensor"}
    yield None, PrivateSpectralLDA(**words).fit(counts())
    yield SPHERICAL, PrivateSpectralLDA(**words, delta=0.0).fit(counts())
    yield None, PrivateSpectralLDA(**lda, delta=0.0, epsilon=math.inf).fit(counts())
    for perturbation in ("whitened_tensor", "moment_tensor", "iteration", "stream"):
        power = {**lda, "data_norm": 1.0, "perturbation": perturbation, "max_iter": 2}
        yield None, PrivateTensorPowerMethod(**power).fit(SAMPLES)
        yield SPHERICAL, PrivateTensorPowerMethod(**power, delta=0.0).fit(SAMPLES)
    cells = {"rank": 1, "bounds": (0, 1), "max_iter": 1, "perturbation": "gradient"}
    yield None, PrivateCPCompletion(**cells).fit(CELLS, VALUES)
    # One step of the gradient has Laplace noise by coordinates.
    yield None, PrivateCPCompletion(**cells, delta=0.0).fit(CELLS, VALUES)


@tiny
def test_what_the_program_adds_to_delta_is_in_the_report():
    for wanted, model in fits():
        report = model.privacy_report_
        for shown in (str(report), report._repr_html_(), json.loads(report.to_json())["notes"]):
            said = str(shown)
            assert (SPHERICAL in said) == (wanted == SPHERICAL)


@tiny
def test_a_stream_goes_on_saying_it():
    power = PrivateTensorPowerMethod(1, data_norm=1.0, delta=0.0, max_iter=2, random_state=0)
    for start in range(0, 200, 50):
        power.partial_fit(SAMPLES[start : start + 50])
    notes = power.privacy_report_.notes
    assert sum(SPHERICAL in note for note in notes) == 1
    assert sum("disjoint" in note for note in notes) == 1


def test_every_law_that_is_not_proved_has_a_residual():
    assert any(law.name.startswith("spherical") for law in LAWS)
    for law in LAWS:
        if isinstance(law, Mechanism) and law.name.startswith("spherical"):
            assert law.residual is not None
