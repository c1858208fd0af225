"""Norms and ranges that are chosen by a noisy histogram: what is released and then clipped."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

from sktensor_dp import (
    NotEnoughDataWarning,
    PrivateCPCompletion,
    PrivateTensorPowerMethod,
)
from sktensor_dp.privacy.curators.entries import EntryCurator, SliceCurator
from sktensor_dp.privacy.curators.samples import SampleCurator
from sktensor_dp.privacy.mechanisms import range_reached
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.queries.entries import EntryChunks
from sktensor_dp.queries.query import SIZES, bins_of
from sktensor_dp.queries.samples import LiftedBall, SampleChunks
from sktensor_dp.queries.slices import SliceChunks

EDGES = np.concatenate([-SIZES[::-1], [0.0], SIZES])
WIDE = (-float(SIZES[-1]), float(SIZES[-1]))
STARS = np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], [600, 1100, 2700, 3500, 2100])
INF = math.inf


def shares(values: np.ndarray) -> np.ndarray:
    return np.bincount(bins_of(values, EDGES), minlength=len(EDGES) - 1) / len(values)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (STARS, 0.89, 5.0),
        (-STARS, -5.6, -1.0),
        (np.zeros(9), -1e-7, 0.0),
        (np.array([1e300, -1e300]), *WIDE),
    ],
    ids=["stars", "below zero", "zeros", "beyond all edges"],
)
def test_an_exact_histogram_gives_the_edges_about_all_values(values, low, high):
    found = range_reached(shares(values), 0.0, EDGES, 0.0, pure=False)
    assert found == (low, high, True)


def test_a_tail_of_values_is_left_out_on_either_side():
    values = np.append(STARS, [1e6] * 50 + [-1e6] * 50)  # half a hundredth each
    assert range_reached(shares(values), 0.0, EDGES, 0.01, pure=False)[:2] == (0.89, 5.0)


@pytest.mark.parametrize("pure", [False, True])
def test_noise_alone_hardly_ever_fills_a_bin(pure, seed):
    """Six histograms, each of 1e-3: of 400 more than 12 in fewer than one run of 1e5.

    Alternative: the universal threshold, by which one of ten has a bin of noise.
    """
    rng = np.random.default_rng(seed)
    draw = (lambda n: rng.laplace(size=n) / math.sqrt(2)) if pure else rng.standard_normal
    seen = [range_reached(draw(len(EDGES) - 1), 1.0, EDGES, 0.01, pure=pure)[2] for _ in range(400)]
    assert sum(seen) <= 12


def test_what_is_spread_over_many_bins_is_seen_by_merging_them(seed):
    """A hundred bins of 1 %, each within two deviations of noise; 16 are nearly six of theirs."""
    rng = np.random.default_rng(seed)
    share = np.zeros(len(EDGES) - 1)
    share[400:500] = 0.01
    noisy = share + 0.0065 * rng.standard_normal(len(share))
    low, high, seen = range_reached(noisy, 0.0065, EDGES, 0.01, pure=False)
    assert seen
    assert EDGES[368] <= low <= EDGES[432]
    assert EDGES[468] <= high <= EDGES[532]


def mixture(seed: int = 0, n: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    means = 4.0 * np.eye(3, 8)
    return means[rng.integers(3, size=n)] + rng.standard_normal((n, 8)), means


def model(**options: Any) -> PrivateTensorPowerMethod:
    given = {"moment": "gaussian_mixture", "data_norm": "auto", "random_state": 0, **options}
    return PrivateTensorPowerMethod(3, **given)


def test_a_norm_is_chosen_first_at_two_percent_of_the_budget(seeded_noise):
    X, _ = mixture()
    fitted = model().fit(X)
    rows = fitted.privacy_report_.composition.rows
    spent = [row.uses * row.mu**2 for row in rows]
    assert rows[0].name == "norm_histogram"
    assert spent[0] == pytest.approx(0.02 * sum(spent))
    inside = np.mean(np.linalg.norm(X, axis=1) <= fitted.data_norm_)
    assert 0.97 <= inside <= 0.9999
    planned = model().forecast(*X.shape)
    assert planned.enough
    assert model(epsilon=0.98).forecast(*X.shape).n_samples_needed >= planned.n_samples_needed


def test_components_are_as_near_as_with_a_good_public_norm(seeded_noise):
    """The bar of 1.3 is measured by a benchmark; of one seed the ratio is below 2."""
    X, means = mixture(1)
    good = np.quantile(np.linalg.norm(X, axis=1), 0.99)

    def error(norm: Any) -> float:
        found = model(data_norm=norm).fit(X).components_
        return max(np.linalg.norm(found - mean, axis=1).min() for mean in means)

    assert error("auto") < 2 * error(float(good))


def test_the_ball_has_the_norm_that_was_released():
    """And the constant of a mixture grows with it: half of the radius."""
    X = np.vstack([np.full((99, 4), 1.0), np.full((1, 4), 50.0)])
    plan = ReleasePlan(INF, 1e-6, (PlannedRelease("norm_histogram", PrivacyCost(mu=INF)),))
    options = {"spender": "test", "unit": "sample", "accountant": None}
    with SampleCurator(SampleChunks(X, *X.shape), plan, known=LiftedBall(1, 0.5), **options) as of:
        assert of.choose_norm()
        assert (of.radius, of.offset) == (100.0, 50.0)


@pytest.mark.parametrize("part", [0.2, 0.5])
def test_a_norm_far_too_small_is_warned_of(part, seeded_noise):
    """At a part of the median; at the largest norm there is no warning, which would be an error."""
    X, _ = mixture()
    norms = np.linalg.norm(X, axis=1)
    model(data_norm=float(norms.max()), epsilon=20.0).fit(X)
    with pytest.warns(UserWarning, match="Nearly all samples are as long as data_norm"):
        model(data_norm=float(part * np.median(norms))).fit(X)


@pytest.mark.parametrize("call", ["partial_fit", "fit_chunks", "fit", "fit_tensor"])
def test_a_stream_or_a_tensor_shows_no_norm(call):
    streams = {"moment": "raw", "perturbation": "stream" if call == "fit" else "auto"}
    X = np.ones((60, 3))
    data: Any = {"fit_chunks": iter([X]), "fit_tensor": np.ones((3, 3, 3))}.get(call, X)
    with pytest.raises(ValueError, match="'auto'"):
        getattr(model(**streams), call)(data)


def test_that_nothing_is_known_is_refused_with_advice():
    with pytest.raises(ValueError, match=r"norm that rows are scaled down to.*'auto' chooses it"):
        model(data_norm=None).fit(np.ones((9, 3)))
    with pytest.raises(ValueError, match=r"range \(low, high\).*'auto' chooses it"):
        PrivateCPCompletion(1).fit([[0, 0]], [1.0])


def ratings(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.repeat(np.arange(n), 10), np.tile(np.arange(10), n)])
    return X, np.clip(rng.choice(STARS, len(X)) + X[:, 1] % 3 - 1, 1, 5)


# Ratings at random: no row differs from another by more than noise.
@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
@pytest.mark.parametrize("unit_mode", [None, 0])
def test_a_range_is_chosen_first_at_two_percent_of_the_budget(unit_mode, seeded_noise):
    X, y = ratings()
    y[:3] = [1e9, -1e9, 1e300]
    build = PrivateCPCompletion(
        0, bounds="auto", shape=(2000, 10), unit_mode=unit_mode, epsilon=5.0, random_state=0
    )
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
    known = PrivateCPCompletion(
        0, bounds=(0, 1), shape=(2000, 10), unit_mode=unit_mode, epsilon=5.0
    ).forecast(len(y), (2000, 10))
    said = build.forecast(len(y), (2000, 10))
    assert known.of_model <= said.of_model <= 1.05 * known.of_model


def curators() -> list[Any]:
    """Curators of values far beyond what is common, for both units, before their first release."""
    X, y = ratings(500)
    y[:20] = 1e8
    cost = PrivacyCost(mu=5.0)
    plan = ReleasePlan(9.0, 1e-6, (PlannedRelease("value_histogram", cost),))
    options: Any = {"spender": "test", "unit": "unit", "accountant": None}
    return [
        EntryCurator(EntryChunks(X, y, (500, 10), WIDE), plan, **options),
        SliceCurator(SliceChunks(X, y, (500, 10), 0, WIDE), plan, **options),
    ]


@pytest.mark.parametrize("place", [0, 1], ids=["entries", "slices"])
def test_no_query_sees_more_than_the_chosen_range(place, seeded_noise):
    with curators()[place] as curator:
        low, high, seen = curator.choose_bounds()
        assert (low, high, seen) == (0.89, 5.0, True)
        values = curator._read().values
        assert (curator.half, curator.middle) == (5.0 / 2 - 0.89 / 2, 5.0 / 2 + 0.89 / 2)
        assert curator._read().half == curator.half
        assert np.abs(values).max() == curator.half
        assert np.isin(np.round(values + curator.middle, 9), [*range(1, 6)]).all()


def test_every_unit_counts_once_whatever_it_holds():
    """One person has a thousand values of 1, and nine have one of 3: a tenth are 1."""
    X = np.vstack([np.argwhere(np.ones((1, 1000))), [[u, 0] for u in range(1, 10)]])
    y = np.append(np.ones(1000), np.full(9, 3.0))
    chunk = SliceChunks(X, y, (10, 1000), 0, WIDE)
    assert np.bincount(chunk.units, chunk.shares) == pytest.approx(np.ones(10))


def test_values_in_partitions_are_clipped_to_the_released_range():
    array = pytest.importorskip("dask.array")
    X, y = ratings(60)
    y[:5] = 1e8
    build = PrivateCPCompletion(
        0, bounds="auto", shape=(60, 10), unit_mode=0, epsilon=INF, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = build.fit(X, np.minimum(y, 5.0))
        there = PrivateCPCompletion(**build.get_params()).fit(
            array.from_array(X, chunks=(100, 2)), array.from_array(np.minimum(y, 5.0), chunks=100)
        )
    assert here.bounds_ == there.bounds_ == (0.89, 5.0)
    np.testing.assert_allclose(here.biases_[1], there.biases_[1], atol=1e-9)


@pytest.mark.parametrize("unit_mode", [None, 0])
def test_where_noise_hides_the_histogram_a_fit_says_so(unit_mode, seeded_noise):
    X, y = ratings(30)
    build = PrivateCPCompletion(
        0, bounds="auto", shape=(30, 10), unit_mode=unit_mode, epsilon=0.01, random_state=0
    )
    for name, fit in (
        ("value_histogram", lambda: build.fit(X, y)),
        ("norm_histogram", lambda: model(epsilon=0.01).fit(mixture(n=50)[0])),
    ):
        with pytest.warns(NotEnoughDataWarning) as told:
            fit()
        assert f"The released {name} shows nothing" in str(told[0].message)
