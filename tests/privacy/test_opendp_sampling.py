"""Noise from OpenDP: the same law, and clear refusals."""

import importlib.util
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from sktensor_dp import (
    BudgetAccountant,
    PrivacyLeakWarning,
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    config_context,
    unsafe_seeded_noise,
)
from sktensor_dp.privacy import noise, opendp_sampling, plan
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.report import PrivacyReport

N = 20_000


def exact() -> NoiseSource:
    with config_context(noise="exact"):
        return NoiseSource()


# Unseeded, as OpenDP can only be: every threshold is passed but for one run in a million.
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_both_samplers_agree_in_law(law: str) -> None:
    ours, theirs = (getattr(source, law)(np.zeros(N), 0.7) for source in (NoiseSource(), exact()))
    assert stats.ks_2samp(ours, theirs, method="asymp").pvalue > 1e-6
    size = N if law == "laplace" else math.sqrt(N)
    grid = NoiseSource().grid(1 / 0.7, size)
    family = stats.laplace if law == "laplace" else stats.norm
    for released in (ours, theirs):
        # On one and the same grid, with even low digits.
        steps = np.rint(released / grid.step)
        assert np.array_equal(steps * grid.step, released)
        counts = np.bincount(steps.astype(np.int64) % 16, minlength=16)
        assert stats.chisquare(counts).pvalue > 1e-6
        accepted = stats.kstest(released, family(scale=grid.scale).cdf, method="asymp")
        assert accepted.pvalue > 1e-6
        # 8 % in scale move the distribution by 0.014, or 2.1 / sqrt(N); 20 % by 0.034.
        rejected = stats.kstest(released, family(scale=1.2 * grid.scale).cdf, method="asymp")
        assert rejected.pvalue < 1e-6


@pytest.mark.parametrize("bits", [0, 2, 12, 45])
def test_discrete_noise_is_rounded_to_the_coarser_grid(bits: int) -> None:
    for law, family in (("gaussian", stats.norm), ("laplace", stats.laplace)):
        steps = opendp_sampling.opendp_samples(law, N, bits)
        assert steps.dtype == np.int64
        width = 2 ** max(bits - 2, 0)
        edges = (np.arange(-12, 13) - 0.5) * width
        shift = 0.0 if width == 1 else 0.5
        counts = np.histogram(steps + shift, edges + shift)[0]
        expected = N * np.diff(family(scale=2.0**bits).cdf(edges))
        kept = expected > 5
        observed = np.append(counts[kept], N - counts[kept].sum())
        expected = np.append(expected[kept], N - expected[kept].sum())
        observed, expected = observed[expected > 0.5], expected[expected > 0.5]
        # Before 1.16 scipy wants sums to agree, which half a sample may be missing from.
        expected *= observed.sum() / expected.sum()
        assert stats.chisquare(observed, expected).pvalue > 1e-6


def test_draws_differ_between_releases_and_fits() -> None:
    drawn = [exact().gaussian(np.zeros(4), 1.0) for _ in range(3)]
    assert len({tuple(noise) for noise in drawn}) == 3


def test_large_releases_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 100000 numbers, got 100001"):
        exact().gaussian(np.zeros(100_001), 1.0)
    assert exact().gaussian(np.zeros(0), 1.0).size == 0


def test_spherical_noise_is_refused() -> None:
    with pytest.raises(ValueError, match="no spherical Laplace law"):
        exact().spherical_laplace(np.zeros(3), 1.0)
    with pytest.raises(ValueError, match="no spherical Laplace law"):
        exact().spherical_laplace_rows(np.zeros((3, 2)), 1.0)


def test_missing_package_is_named_on_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install opendp"), config_context(noise="exact"):
        pass
    with config_context(noise="grid"):
        assert NoiseSource().sampler == "grid"


def test_exact_noise_cannot_be_seeded() -> None:
    with (
        pytest.warns(PrivacyLeakWarning),
        unsafe_seeded_noise(1),
        pytest.raises(ValueError, match="cannot be seeded"),
        config_context(noise="exact"),
    ):
        pass
    with (
        config_context(noise="exact"),
        pytest.raises(ValueError, match="cannot be seeded"),
        unsafe_seeded_noise(1),
    ):
        pass


@pytest.mark.parametrize(
    ("first", "later", "joined"),
    [("grid", "exact", "grid"), ("exact", "exact", "exact"), ("exact", "float", "float")],
)
def test_reports_name_the_weaker_sampler(first: str, later: str, joined: str) -> None:
    reports = [
        PrivacyReport(1.0, 1e-6, "row", "replace_one", 9, s, False, ()) for s in (first, later)
    ]
    assert reports[0].joined(reports[1]).sampler == joined
    assert reports[1].joined(reports[0]).sampler == joined
    assert (
        "floating-point"
        not in PrivacyReport(1.0, 1e-6, "row", "replace_one", 9, "exact", False, ()).guarantee
    )


def _topics(**options: Any) -> Any:
    counts = np.random.default_rng(0).poisson(1.0, (80, 30))
    return PrivateSpectralLDA(2, random_state=0, **options), (counts,)


def _components(**options: Any) -> Any:
    samples = np.random.default_rng(0).standard_normal((80, 30))
    return PrivateTensorPowerMethod(2, data_norm=1.0, max_iter=1, **options), (samples,)


def _entries(rows: int, **options: Any) -> Any:
    rng = np.random.default_rng(0)
    model = PrivateCPCompletion(2, bounds=(0, 1), shape=(rows, 9), random_state=0, **options)
    return model, (rng.integers(0, [rows, 9], (400, 2)), rng.random(400))


SUMS, GRADIENT, OUTPUT = (
    {"perturbation": "sufficient_statistics"}, {"perturbation": "gradient", "max_iter": 1},
    {"perturbation": "output"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("case", "fits"),
    [
        (_topics(epsilon=1e3), False), (_topics(epsilon=1e3, perturbation="moment_tensor"), False),
        (_topics(epsilon=0.1), True), (_topics(epsilon=1e3, delta=0), False),
        (_components(), False),
        (_components(perturbation="stream", n_restarts=9), False),
        (_components(perturbation="stream", n_restarts=2), True),
        (_components(perturbation="stream", n_restarts=2, delta=0), False),
        (_entries(400, **SUMS), False), (_entries(60, **SUMS), True),
        (_entries(60, delta=0, **SUMS), False), (_entries(120, **GRADIENT), False),
        (_entries(40, **GRADIENT), True), (_entries(200, **OUTPUT), True),
        (_entries(9, delta=0, **OUTPUT), False), (_entries(400, perturbation="input"), True),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_what_is_not_drawn_exactly_is_refused_before_the_charge(case, fits, monkeypatch):
    """Releases of at most 250 numbers, each of them independent."""
    for place in (opendp_sampling, noise):
        monkeypatch.setattr(place, "LARGEST_SIZE", 250)
    monkeypatch.setattr(plan, "DRAWN_BY_ALL", 250)
    model, data = case
    accountant = BudgetAccountant(1e9, 0.5)
    model = clone(model).set_params(accountant=accountant)
    with config_context(noise="exact"):
        if fits:
            model.fit(*data)
            return
        with pytest.raises(ValueError, match=r"noise='exact' is .* Nothing was charged"):
            model.fit(*data)
    assert accountant.entries == ()
