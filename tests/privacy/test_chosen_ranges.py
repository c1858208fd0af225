"""Norms and ranges that are chosen by a noisy histogram: what is released and then clipped."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from internals import data_of
from sklearn.base import clone

from sktensor_dp import (
    NotEnoughDataWarning,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateTensorPowerMethod,
)
from sktensor_dp.completion.estimator import release_bounds
from sktensor_dp.data.entries import EntryChunks
from sktensor_dp.data.person_entries import PersonChunks
from sktensor_dp.data.samples import SampleChunks
from sktensor_dp.estimator.data_norm import release_ball
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.query import SIZE_EDGES, bins_of
from sktensor_dp.queries.samples import LiftedBall
from sktensor_dp.spectral_lda.texts_per_person import EDGES as TEXTS

EDGES = np.concatenate([-SIZE_EDGES[::-1], [0.0], SIZE_EDGES])
WIDE = (-float(SIZE_EDGES[-1]), float(SIZE_EDGES[-1]))
STARS = np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], [600, 1100, 2700, 3500, 2100])
INF = math.inf


def shares(values: np.ndarray) -> np.ndarray:
    return np.bincount(bins_of(values, EDGES), minlength=len(EDGES) - 1) / len(values)


def answer(share: np.ndarray, sigma: float, pure: bool = False) -> Answer:
    cost = PrivacyCost(epsilon=1.0) if pure else PrivacyCost(mu=1.0)
    return Answer(share, sigma, 1.0, cost, 1)


HISTOGRAMS = {
    "stars": (STARS, 0.0, (0.89, 5.0)),
    "below zero": (-STARS, 0.0, (-5.6, -1.0)),
    "zeros": (np.zeros(9), 0.0, (-1e-7, 0.0)),
    "beyond all edges": (np.array([1e300, -1e300]), 0.0, WIDE),
    # Half a hundredth on either side.
    "tails": (np.append(STARS, [1e6] * 50 + [-1e6] * 50), 0.01, (0.89, 5.0)),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_an_exact_histogram_gives_the_edges_about_all_values_but_a_tail(name, monkeypatch):
    values, tail, reached = HISTOGRAMS[name]
    monkeypatch.setattr("sktensor_dp.privacy.answer.TAIL", tail)
    assert answer(shares(values), 0.0).range_of(EDGES) == (*reached, True)


@pytest.mark.parametrize("pure", [False, True])
def test_noise_alone_hardly_ever_fills_a_bin(pure, seed):
    """Six histograms, each of 1e-3: of 400 more than 12 in fewer than one run of 1e5.

    Alternative: the universal threshold, by which one of ten has a bin of noise.
    """
    rng = np.random.default_rng(seed)
    draw = (lambda n: rng.laplace(size=n) / math.sqrt(2)) if pure else rng.standard_normal
    seen = [answer(draw(len(EDGES) - 1), 1.0, pure).range_of(EDGES)[2] for _ in range(400)]
    assert sum(seen) <= 12


def test_what_is_spread_over_many_bins_is_seen_by_merging_them(seed):
    """A hundred bins of 1 %, each within two deviations of noise; 16 are nearly six of theirs."""
    rng = np.random.default_rng(seed)
    share = np.zeros(len(EDGES) - 1)
    share[400:500] = 0.01
    noisy = share + 0.0065 * rng.standard_normal(len(share))
    low, high, seen = answer(noisy, 0.0065).range_of(EDGES)
    assert seen
    assert EDGES[368] <= low <= EDGES[432]
    assert EDGES[468] <= high <= EDGES[532]


def groups(n: int = 20_000) -> np.ndarray:
    rng = np.random.default_rng(0)
    return 4.0 * np.eye(3, 8)[rng.integers(3, size=n)] + rng.standard_normal((n, 8))


def model(**options: Any) -> PrivateTensorPowerMethod:
    return PrivateTensorPowerMethod(3, **{"data_norm": "auto", "random_state": 0, **options})


def test_a_norm_is_chosen_first_at_two_percent_of_the_budget(seeded_noise):
    X = groups()
    fitted = model().fit(X)
    rows = fitted.privacy_report_.composition.rows
    spent = [row.uses * row.mu**2 for row in rows]
    assert rows[0].name == "norm_histogram"
    assert spent[0] == pytest.approx(0.02 * sum(spent))
    inside = np.mean(np.linalg.norm(X, axis=1) <= fitted.data_norm_)
    assert 0.97 <= inside <= 0.9999
    mixtures = PrivateGaussianMixture(3, data_norm="auto")
    planned = mixtures.forecast(*X.shape)
    assert planned.enough
    needed = mixtures.set_params(epsilon=0.98).forecast(*X.shape).n_samples_needed
    assert needed >= planned.n_samples_needed


def test_the_ball_has_the_norm_that_was_released():
    """And the constant of a mixture grows with it: half of the radius."""
    X = np.vstack([np.full((95, 4), 1.0), np.full((5, 4), 50.0)])
    plan = ReleasePlan(INF, 1e-6, (PlannedRelease("norm_histogram", PrivacyCost(mu=INF)),))
    with Session(SampleChunks(X, *X.shape), plan) as ask:
        ball, warned = release_ball(ask, LiftedBall(1, 0.5))
    assert warned == ()
    assert (ball.radius, ball.offset) == (100.0, 50.0)


def test_without_noise_a_choice_is_the_limit_of_little_noise():
    """One sample in 2,000 is sixty times as long; so is one value."""
    X, y = np.random.default_rng(0).standard_normal((2000, 5)), ratings(60)[1].astype(float)
    X[0], y[0] = 60 * X[0], 500.0
    entries = ratings(60)[0]
    for fit in (
        lambda epsilon: model(epsilon=epsilon).fit(X).data_norm_,
        lambda epsilon: completion(60, epsilon, None).fit(entries, y).bounds_,
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert fit(INF) == fit(1e9)


def ratings(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.repeat(np.arange(n), 10), np.tile(np.arange(10), n)])
    return X, np.clip(rng.choice(STARS, len(X)) + X[:, 1] % 3 - 1, 1, 5)


def completion(n: int, epsilon: float, unit_mode: int | None, bounds: Any = "auto") -> Any:
    return PrivateCPCompletion(
        0, bounds=bounds, shape=(n, 10), unit_mode=unit_mode, epsilon=epsilon, random_state=0
    )


# Ratings at random: no row differs from another by more than noise.
@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
@pytest.mark.parametrize("unit_mode", [None, 0])
def test_a_range_is_chosen_first_at_two_percent_of_the_budget(unit_mode, seeded_noise):
    X, y = ratings()
    y[:3] = [1e9, -1e9, 1e300]
    build = completion(2000, 5.0, unit_mode)
    fitted = build.fit(X, y)
    rows = fitted.privacy_report_.composition.rows
    spent = [row.uses * (row.epsilon or row.mu**2) for row in rows]
    whole = 5.0 if unit_mode is None else sum(spent)
    assert rows[0].name == "value_histogram"
    assert spent[0] == pytest.approx(0.02 * whole)
    assert fitted.bounds_ == (0.89, 5.0)
    assert fitted.privacy_report_.epsilon == pytest.approx(5.0)
    assert 0.89 <= fitted.predict(X[:50]).min() <= fitted.predict(X[:50]).max() <= 5.0
    # Errors are in widths of the range that is found.
    known = completion(2000, 5.0, unit_mode, (0, 1)).forecast(len(y), (2000, 10))
    said = build.forecast(len(y), (2000, 10))
    assert (1 - 1e-5) * known.of_model <= said.of_model <= 1.05 * known.of_model


@pytest.mark.parametrize("unit_mode", [None, 0])
def test_no_query_sees_more_than_the_chosen_range(unit_mode, seeded_noise):
    """Of values of which some are far beyond what is common."""
    X, y = ratings(500)
    y[:20] = 1e8
    plan = ReleasePlan(9.0, 1e-6, (PlannedRelease("value_histogram", PrivacyCost(mu=5.0)),))
    units = EntryChunks(X, y, (500, 10), WIDE)
    if unit_mode == 0:
        units = PersonChunks(X, y, (500, 10), 0, WIDE)
    with Session(units, plan) as ask:
        bounds, unseen = release_bounds(ask)
        assert (bounds, unseen) == ((0.89, 5.0), ())
        ask.clip_values(bounds)
        read, half, middle = data_of(ask), ask.public("half"), ask.public("middle")
        assert (half, middle) == (5.0 / 2 - 0.89 / 2, 5.0 / 2 + 0.89 / 2)
        assert read.half == half
        assert np.abs(read.values).max() == half
        assert np.isin(np.round(read.values + middle, 9), [*range(1, 6)]).all()


def test_values_in_partitions_are_clipped_to_the_released_range():
    array = pytest.importorskip("dask.array")
    X, y = ratings(60)
    y = np.minimum(y, 5.0)
    build = completion(60, INF, 0)
    lazy = array.from_array(X, chunks=(100, 2)), array.from_array(y, chunks=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, there = build.fit(X, y), clone(build).fit(*lazy)
    assert here.bounds_ == there.bounds_ == (0.89, 5.0)
    np.testing.assert_allclose(here.biases_[1], there.biases_[1], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "fit"),
    [
        ("value_histogram", lambda: completion(30, 0.01, None).fit(*ratings(30))),
        ("value_histogram", lambda: completion(30, 0.01, 0).fit(*ratings(30))),
        ("norm_histogram", lambda: model(epsilon=0.01).fit(groups(50))),
    ],
    ids=["entries", "persons", "samples"],
)
def test_where_noise_hides_the_histogram_a_fit_says_so(name, fit, seeded_noise):
    with pytest.warns(NotEnoughDataWarning) as told:
        fit()
    assert f"The released {name} shows nothing" in str(told[0].message)


@pytest.mark.parametrize("pure", [False, True])
def test_few_busy_units_are_seen_and_noise_alone_adds_little(pure, seed):
    """Of 4,000 units 3 % are busy, in a bin of their own, and noise has a deviation of 15 units.

    Their 120 are 8 deviations, above a level of 3.5 at that edge (Laplace: 5). Noise alone shows
    some beyond 5 texts in one draw of 150: in 8 of 100 by one chance in a million.
    """
    rng, sigma = np.random.default_rng(seed), 15 / 4000
    few, none = np.zeros(21), np.zeros(21)
    none[0] = 1.0
    few[[0, 5]] = 0.97, 0.03  # about 24 texts
    draw = (
        (lambda: rng.laplace(scale=sigma / 2**0.5, size=21))
        if pure
        else (lambda: rng.normal(scale=sigma, size=21))
    )
    seen = [answer(few + draw(), sigma, pure).last_edge(TEXTS) for _ in range(100)]
    assert np.median(seen) == TEXTS[6]
    noise = [answer(none + draw(), sigma, pure).last_edge(TEXTS) for _ in range(100)]
    assert np.median(noise) == TEXTS[1]
    assert np.mean(np.array(noise) > 5) < 0.08
