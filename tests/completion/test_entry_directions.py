"""Components of wide tables for persons who fold in, where single entries are the unit."""

from types import SimpleNamespace

import numpy as np
import pytest

from sktensor_dp import PrivateCPCompletion, PrivateTuckerCompletion, unsafe_seeded_noise
from sktensor_dp.completion import direction_recipe, pair_plan, plan
from sktensor_dp.completion.assumed import Assumed
from sktensor_dp.completion.direction_recipe import _Search
from sktensor_dp.completion.entry_forecast import of_entries
from sktensor_dp.completion.pair_plan import DIRECTION_SHARES, SEARCHES, kept_at
from sktensor_dp.completion.plan import plan_completion
from sktensor_dp.statistics.entry_directions import EntryDirections
from sktensor_dp.statistics.observed_entries import IndexSet
from sktensor_dp.statistics.row_cells import RowCells

pytestmark = pytest.mark.filterwarnings(
    "ignore::sktensor_dp.PrivacyLeakWarning", "ignore::sktensor_dp.NotEnoughDataWarning"
)

N, D, EACH, EPSILON = 5000, 100, 25, 3.0
KNOWN = {"epsilon": 1.0, "delta": 1e-6, "perturbation": "auto", "max_iter": None}
WIDE = (2_160_000, (60_000, 2000), 10)


@pytest.fixture
def narrow(monkeypatch):
    """Tables of few columns are given directions, not pairs: they are quick to fit."""
    monkeypatch.setattr(pair_plan, "pair_share", lambda *_: 0.0)
    monkeypatch.setattr(plan, "values_pay", lambda *_: False)
    monkeypatch.setattr(pair_plan, "MOST_PAIRED", 0)


def answers(seed, size=0.5, mode=0):
    """Columns' levels, and two components beside them: to fit, and others."""
    rng = np.random.default_rng(seed)
    T = 0.3 * rng.standard_normal(D)
    T = T + size * rng.standard_normal((N, 2)) @ rng.standard_normal((2, D))
    T = 1.6 * (T + 0.5 * rng.standard_normal((N, D)))
    X = np.argwhere(rng.random((N, D)) < EACH / D)
    y, test = T[tuple(X.T)], rng.random(len(X)) < 0.1
    X = X[:, ::-1] if mode else X
    return (X[~test], y[~test]), (X[test], y[test])


def fitted(data, seed, kind=PrivateCPCompletion, mode=0, **options):
    shape = (D, N) if mode else (N, D)
    model = kind(
        4, bounds=(-4, 4), shape=shape, random_state=seed, unit_mode=mode, epsilon=EPSILON,
        **options,
    )  # fmt: skip
    with unsafe_seeded_noise(seed):
        return model.fit(*data)


def folded(model, data, test):
    return float(np.sqrt(np.mean((model.fold_in(*data).predict(test[0]) - test[1]) ** 2)))


@pytest.mark.parametrize(("kind", "mode"), [(PrivateCPCompletion, 0), (PrivateTuckerCompletion, 1)])
def test_persons_fold_in_components_of_wide_tables(narrow, kind, mode, seed):
    data, test = answers(seed, mode=mode)
    model, sums = fitted(data, seed, kind, mode), fitted(data, seed, kind, mode, max_iter=0)
    # Equal ones are one row of the report.
    sums_row, *others = model.privacy_report_.rows
    assert sums_row.name == "row_sums"
    assert {row.name for row in others} == {"entry_directions"}
    assert sum(row.uses for row in others) == pair_plan.SEARCHES
    # Exact components leave 1.6 times .5 of a deviation about levels of 1.6 times
    # sqrt(.5^2 + 2 .5^2), which is .58 of it; two weights of 22 values add a tenth to it.
    assert folded(model, data, test) < 0.75 * folded(sums, data, test)


def test_where_there_is_nothing_noise_is_no_component(narrow, seed):
    data, test = answers(seed, size=0.0)
    model, sums = fitted(data, seed), fitted(data, seed, max_iter=0)
    # One weight more to 22 values adds half of 1 / 22 to the error, if it is not shrunk at all.
    assert folded(model, data, test) < 1.025 * folded(sums, data, test)
    # Of four eigenvalues of noise half are above 0. Two are not above what the largest is expected
    # to be and two deviations more.
    assert len(model.weights_) <= 1


def test_saved_models_fold_in_the_same(narrow, tmp_path):
    data, test = answers(0)
    model = fitted(data, 0)
    people, items = model.factors_
    assert not people.any()
    assert items.shape == (D, len(model.weights_))
    # Columns of 100 numbers of deviation .8; measured over seeds 0 to 5: 7.3 to 9.4.
    assert len(model.weights_) == 2
    assert (np.abs(model.weights_ / 8 - 1) < 0.4).all()
    assert (np.diff(model.weights_) <= 1e-12).all()
    model.save(tmp_path / "model")
    loaded = PrivateCPCompletion.load(tmp_path / "model")
    own = (of.fold_in(*data).predict(test[0]) for of in (model, loaded))
    np.testing.assert_array_equal(*own)


def test_a_search_does_as_forecast(narrow, seed):
    """Directions are found only partly, which a forecast knows from public numbers."""
    n, d, each, count = 12_000, 150, 30, 5
    rng = np.random.default_rng(seed)
    X = np.argwhere(rng.random((n, d)) < each / d)
    U, V = rng.standard_normal((n, count)), rng.standard_normal((d, count))
    # Of the sizes that are told, not only on average, and of mean 0: columns are few.
    V = np.linalg.qr(V - V.mean(axis=0))[0] * np.sqrt(d)
    y = np.sqrt(0.5 / count) * np.einsum("ek,ek->e", U[X[:, 0]], V[X[:, 1]])
    y += np.sqrt(0.5) * rng.standard_normal(len(X))
    test = rng.random(len(X)) < 0.1
    model = PrivateCPCompletion(
        count, bounds=(-4, 4), shape=(n, d), epsilon=EPSILON, random_state=seed
    )  # fmt: skip
    said = model.forecast(
        int((~test).sum()), (n, d), deviation=1.0, bias_deviation=0.0, component_share=0.5
    )  # fmt: skip
    with unsafe_seeded_noise(seed):
        model.fit(X[~test], y[~test])
    found = folded(model, (X[~test], y[~test]), (X[test], y[test]))
    # Three to four percent too good at this size; 36,000 values to predict err by 1 % at most. To
    # forget that the search finds a part only, or that there are components, is off by a tenth.
    assert said.of_fold_in == pytest.approx(found, rel=0.05)


def test_sums_are_forecast_by_what_directions_leave_of_epsilon():
    n_observed, shape, rank = WIDE
    made = plan_completion(n_observed, shape, rank, **KNOWN)
    spent = made.releases.cost_of("row_sums").epsilon
    assert made.n_columns > 0
    assert spent < 0.81
    alone = plan_completion(
        n_observed, shape, rank, epsilon=spent, delta=1e-6, max_iter=0,
        perturbation="sufficient_statistics",
    )  # fmt: skip
    assumed = Assumed.given(2, 8.0, None, None, None)
    by_share = of_entries(n_observed, shape, made, assumed, rank, 0)
    by_sums = of_entries(n_observed, shape, alone, assumed, rank, 0)
    # Weights that favour rows with few entries the more change errors by a tenth of a percent.
    assert by_share.of_biases == pytest.approx(by_sums.of_biases, rel=0.002)
    whole = plan_completion(*WIDE, **{**KNOWN, "max_iter": 0})
    by_all = of_entries(n_observed, shape, whole, assumed, rank, 0)
    assert by_share.of_biases > 1.005 * by_all.of_biases


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_the_plan_costs_what_was_asked_for(epsilon):
    known = {**KNOWN, "epsilon": epsilon}
    made = plan_completion(*WIDE, **known)
    assert made.n_columns >= 4
    assert made.seeks_components
    assert made.releases.cost.epsilon_at(1e-6) == pytest.approx(epsilon, rel=1e-6)
    sums, found = made.releases.releases
    assert 1 - sums.cost.epsilon / epsilon in [pytest.approx(s) for s in DIRECTION_SHARES]
    assert found.uses == pair_plan.SEARCHES
    # Few rows, three modes, no delta, another way, sweeps of one's own, no components.
    for n_observed, shape, changed in (
        (40_000, (1000, 2000), {}), (2_160_000, (60_000, 2000, 3), {}),
        (2_160_000, (60_000, 2000), {"delta": 0.0}),
        (2_160_000, (60_000, 2000), {"perturbation": "sufficient_statistics", "max_iter": 0}),
        (2_160_000, (60_000, 2000), {"max_iter": 0}),
        (2_160_000, (60_000, 2000), {"unit_mode": 1}),
    ):  # fmt: skip
        assert plan_completion(n_observed, shape, 10, **{**known, **changed}).n_columns == 0
    assert plan_completion(*WIDE[:2], 0, **known).n_columns == 0


def test_what_is_known_is_remembered():
    """Sums of directions that are not found yet are forgotten, but for those of the last third."""
    explained = np.array([-0.1, 0.0, 0.1, 0.4, 0.6, 2.0])
    early, late = kept_at(explained, 1), kept_at(explained, SEARCHES - 2)
    assert (np.diff(early) >= 0).all()
    assert early[0] == early[1] < early[2] < early[3] < early[4] == early[5] == 1.0
    np.testing.assert_array_equal(late, 1.0)
    # As much in all, however many releases there are.
    steps = sum(kept_at(np.zeros(1), step)[0] < 1 for step in range(SEARCHES))
    assert early[1] ** steps == pytest.approx(0.7**16)


@pytest.mark.parametrize("reach", [direction_recipe.REACH, direction_recipe.WIDE_REACH])
def test_one_value_of_any_row_moves_as_much(reach, seed):
    """No row of many values, or of long axes, makes noise for all others."""
    rng = np.random.default_rng(seed)
    n, d, r = 40, 60, 3
    X = np.argwhere(rng.random((n, d)) < rng.uniform(0.1, 0.9, (n, 1)))
    cells = RowCells(IndexSet(X, (n, d)), 0)
    asked = []
    curator = SimpleNamespace(
        half=1.0, index_set=cells.index_set, middle=0.0,
        entry_directions=lambda *given: asked.append(EntryDirections(*given[:4], 1.0, *given[4:])),
    )  # fmt: skip
    model = SimpleNamespace(mean=0.0, biases=[np.zeros(n), np.zeros(d)])
    search = _Search(curator, model, 0, 0.4)
    search._asked(rng.standard_normal((d, r)), reach)
    (query,) = asked
    axes = np.linalg.norm(query.axes, axis=1)
    limit = direction_recipe.LONGEST * np.sqrt(r)
    assert axes.max() == pytest.approx(limit)
    limits, others = query.weights, cells.by_row(np.ones(cells.n_cells)) - 1
    # Of each row, by its longest axis.
    longest = np.array([axes[cells.columns[cells.rows == u]].max() for u in range(n)])
    moves = 2 * np.sqrt(limits * (query.lengths**2 + limits * longest**2 * others))
    most = 2 * limit * np.sqrt(others.min() * (1 + reach**2))
    assert (moves <= most * (1 + 1e-9)).all()
    assert moves.max() == pytest.approx(query.l2_sensitivity, rel=1e-5)
    # But for rows without a long axis, whose lengths are those of the others.
    np.testing.assert_allclose(limits**0.5 * query.lengths, reach * limit * np.sqrt(others.min()))
