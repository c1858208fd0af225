"""Fits of groups: of single rows they are those of rows, and no number of rows is shown."""

import io
import pickle
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from typing import Any

import numpy as np
import pytest
import replaying
import scipy.sparse as sp
from replaying import state

from sktensor_dp import (
    BudgetAccountant,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    unsafe_seeded_noise,
)
from sktensor_dp.exceptions import BudgetError
from sktensor_dp.power_method import inputs
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.statistics.samples import SampleChunks

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:noise is seeded"),
]

N, D = 120, 6
SECRET = "opensesame"
TOPICS = {
    "whitened": {}, "one topic": {"doc_topic_prior": 0, "n_refinements": 1},
    "moments": {"perturbation": "moment_tensor"},
    "histogram": {"perturbation": "moment_tensor", "noise_geometry": "histogram"},
    "pure": {"delta": 0}, "exact": {"epsilon": float("inf")},
    "limits": {"clip_norm": {"counts": 4.0, "pairs": 3.0}},
    "one document a group": {"group_rows": "concatenate"},
}  # fmt: skip
COMPONENTS = {
    "whitened": {}, "orthonormal": {"whiten": False}, "moments": {"perturbation": "moment_tensor"},
    "iteration": {"perturbation": "iteration", "max_iter": 1},
    "stream": {"perturbation": "stream", "max_iter": 1},
    "exact stream": {"perturbation": "stream", "max_iter": 1, "epsilon": float("inf")},
    "pure": {"delta": 0},
    "mixture": {"moment": "gaussian_mixture"}, "exact": {"epsilon": float("inf")},
    "documents": {"moment": "single_topic"},
}  # fmt: skip
MODES = [("topics", name) for name in TOPICS] + [("components", name) for name in COMPONENTS]
every_mode = pytest.mark.parametrize(("kind", "mode"), MODES)


def model(kind: str, **options: Any) -> Any:
    if kind == "topics":
        return PrivateSpectralLDA(2, **{"random_state": 0, **options})
    start = {"data_norm": 2.0, "n_restarts": 2, "random_state": 0}
    return PrivateTensorPowerMethod(2, **{**start, **options})


def options_of(kind: str, mode: str) -> dict[str, Any]:
    return (TOPICS if kind == "topics" else COMPONENTS)[mode]


def holds_counts(kind: str, mode: str) -> bool:
    return kind == "topics" or mode == "documents"


def data(rng: np.random.Generator, kind: str, mode: str, n: int = N) -> np.ndarray:
    if holds_counts(kind, mode):
        return rng.poisson(1.0, (n, D)).astype(float)
    return rng.standard_normal((n, D))


def seeded(fit: Callable[[], Any], seed: int = 0) -> Any:
    with warnings.catch_warnings(), unsafe_seeded_noise(seed):
        warnings.simplefilter("ignore")
        return fit()


def public_state(fitted: Any) -> Any:
    """All of it, but the name of the unit."""
    attributes = {**vars(fitted)}
    report = attributes.pop("privacy_report_").to_dict()
    report.pop("unit")
    return state([attributes, report])


# Groups of one row


@every_mode
def test_groups_of_single_rows_are_rows(kind, mode, seed):
    rng = np.random.default_rng(seed)
    X, labels = data(rng, kind, mode), [f"p{place:04d}" for place in range(N)]
    for groups in (np.arange(N), labels):
        plain, grouped = (
            seeded(lambda g=g: model(kind, **options_of(kind, mode)).fit(X, groups=g), seed)
            for g in (None, groups)
        )
        assert public_state(plain) == public_state(grouped)
        assert grouped.privacy_report_.unit == f"group of {plain.privacy_report_.unit}s"


@every_mode
def test_chunks_of_single_rows_are_rows(kind, mode, seed):
    """The same with groups that lie in their order, in chunks."""
    rng = np.random.default_rng(seed)
    X, sizes = data(rng, kind, mode), {"n_samples": N, "n_features": D}
    parts = np.split(np.arange(N), [70])
    sources = [X[part] for part in parts], [(X[part], part) for part in parts]
    plain, grouped = (
        seeded(lambda s=source: model(kind, **options_of(kind, mode)).fit_chunks(s, **sizes), seed)
        for source in sources
    )
    assert public_state(plain) == public_state(grouped)


@pytest.mark.parametrize("kind", ["topics", "components"])
def test_batches_of_single_rows_are_rows(kind, seed):
    rng = np.random.default_rng(seed)
    X = data(rng, kind, "stream")
    options = {} if kind == "topics" else COMPONENTS["stream"]

    def fit(grouped: bool) -> Any:
        estimator = model(kind, **options)
        for rows in np.split(np.arange(N), 3):
            estimator.partial_fit(X[rows], groups=rows if grouped else None)
            estimator = pickle.loads(pickle.dumps(estimator))
        return estimator

    plain, grouped = (seeded(lambda g=g: fit(g), seed) for g in (False, True))
    assert public_state(plain) == public_state(grouped)


# The number of rows is private


def persons(rng: np.random.Generator, kind: str, mode: str, busiest: int, n: int = 40) -> Any:
    """Rows and labels of so many persons, in any order; one of them has the most rows."""
    sizes = rng.integers(1, 4, n)
    sizes[int(rng.integers(n))] = busiest
    labels = rng.permutation(np.repeat(np.arange(n), sizes))
    return data(rng, kind, mode, len(labels)), labels


def fit_whole(estimator: Any, of: Any) -> Any:
    X, groups = of
    return estimator.fit(X, groups=groups)


def fit_sparse(estimator: Any, of: Any) -> Any:
    X, groups = of
    return estimator.fit(sp.csr_array(X), groups=groups.tolist())


def fit_in_chunks(estimator: Any, of: Any) -> Any:
    X, groups = of
    cuts = np.split(np.arange(len(X)), 3 * [len(X) // 3] + [len(X) - 1])
    source = [(X[part], groups[part]) for part in cuts]
    return estimator.fit_chunks(source, n_samples=40, n_features=D)


def fit_in_batches(estimator: Any, of: Any) -> Any:
    X, groups = of
    for part in (groups < 15, (groups >= 15) & (groups < 30), groups >= 30):
        estimator.partial_fit(X[part], groups=groups[part])
    return estimator


WAYS = {"whole": fit_whole, "sparse": fit_sparse, "chunks": fit_in_chunks}


@every_mode
@pytest.mark.parametrize("way", WAYS)
def test_nothing_tells_how_many_rows_groups_have(way, kind, mode, seed):
    """A fit of other persons, of 1 to 3000 rows, that is told the same values, shows the same."""
    if way == "chunks" and "stream" in mode:
        pytest.skip("chunks are batches there")
    rng = np.random.default_rng(seed)
    options = {**options_of(kind, mode), "max_rows_per_group": [None, 2][seed % 2]}
    one = persons(rng, kind, mode, 1)
    other = persons(rng, kind, mode, int(rng.choice([2, 50, 3000])))

    def build() -> Any:
        return model(kind, **{**options, "random_state": np.random.RandomState(0)})

    if "exact" in mode:
        return  # topics without noise are computed from the data
    replaying.replay(build, WAYS[way], one, other)
    replaying.replay(build, WAYS[way], other, one)


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("kind", ["topics", "components"])
def test_nothing_tells_how_many_rows_groups_of_a_stream_have(kind, most, seed):
    rng = np.random.default_rng(seed)
    options = {"max_batches_per_group": most, "epsilon": 3.0}
    options |= {} if kind == "topics" else COMPONENTS["stream"]
    one, other = (persons(rng, kind, "stream", busiest) for busiest in (1, 400))
    replaying.replay(lambda: model(kind, **options), fit_in_batches, one, other)


@pytest.mark.parametrize("kind", ["topics", "components"])
def test_progress_tells_no_number_of_rows(kind, seed):
    rng, said = np.random.default_rng(seed), []
    for busiest in (1, 500):
        X, groups = persons(rng, kind, "whitened", busiest)
        with redirect_stderr(io.StringIO()) as stream:
            seeded(lambda X=X, g=groups: model(kind, verbose=1).fit(X, groups=g))
        said.append(stream.getvalue())
    assert said[0] == said[1] != ""


@every_mode
def test_straddling_groups_are_fitted_as_whole_ones(kind, mode, seed):
    """In chunks cut anywhere; up to the last digits, as rows are added up in another order."""
    if "stream" in mode:
        pytest.skip("chunks are batches there")
    rng = np.random.default_rng(seed)
    X, groups = persons(rng, kind, mode, 20)
    # Before noise all seeds are well: with it a digit could decide what is found.
    options = {**options_of(kind, mode), "epsilon": 1e6}
    whole, chunked = (
        seeded(lambda f=f: f(model(kind, **options), (X, groups)), seed)
        for f in (fit_whole, fit_in_chunks)
    )
    for name in ("components_", "weights_" if kind == "components" else "topic_prior_"):
        np.testing.assert_allclose(
            getattr(chunked, name), getattr(whole, name), rtol=1e-4, atol=1e-6
        )
    assert public_state(whole)[0] == public_state(chunked)[0]
    assert whole.privacy_report_ == chunked.privacy_report_


# Streams deal out labels


def test_rows_of_one_group_change_the_batch_of_no_other(seed):
    """Places are those of labels: by first appearance one more row would shift all others."""
    rng = np.random.default_rng(seed)
    plan = model("components", **COMPONENTS["stream"])._plan(40, D, "stream")

    def batches(labels: np.ndarray) -> list[set[int]]:
        X = labels[:, None].astype(float)
        parts = inputs.random_batches(X, labels, plan, seed, None)
        return [{int(x) for chunk in part for x in chunk.X[:, 0]} for part in parts]

    labels = np.repeat(np.arange(40), rng.integers(1, 4, 40))
    expected = batches(labels)
    assert sorted(set().union(*expected)) == list(range(40))
    assert sum(map(len, expected)) == 40
    for _ in range(5):
        one = int(rng.integers(40))
        more = np.concatenate([labels[labels != one], np.full(int(rng.integers(1, 300)), one)])
        assert batches(rng.permutation(more)) == expected


# Errors come before the charge


def wrong_groups(n: int) -> dict[str, Any]:
    return {
        "short": np.arange(n - 1), "missing": [*range(n - 1), None], "floats": np.arange(float(n)),
        "mixed": [*range(n - 1), SECRET], "one group": np.full(n, 5), "one name": [SECRET] * n,
        "matrix": np.zeros((n, 2), int), "masked": np.ma.array(range(n), mask=np.arange(n) == 3),
    }  # fmt: skip


@pytest.mark.parametrize("method", ["fit", "partial_fit", "fit_chunks"])
@pytest.mark.parametrize("kind", ["topics", "components"])
def test_wrong_groups_cost_nothing_and_are_not_shown(kind, method):
    X = data(np.random.default_rng(0), kind, "whitened")
    for groups in wrong_groups(N).values():
        payer = BudgetAccountant(10.0, 1e-3)
        estimator = model(kind, accountant=payer)
        fit = getattr(estimator, method)
        given = ([(X, groups)],) if method == "fit_chunks" else (X,)
        sizes = {"n_samples": N, "n_features": D}
        named = sizes if method == "fit_chunks" else {"groups": groups}
        with pytest.raises((ValueError, TypeError), match=r"^groups must hold") as caught:
            fit(*given, **named)
        assert not payer.entries
        assert not [name for name in vars(estimator) if name.endswith("_")]
        assert SECRET not in str(caught.value)
        assert str(N) not in str(caught.value)


def test_weights_of_rows_are_refused_with_the_reason():
    for kind in ("topics", "components"):
        for method in ("fit", "partial_fit"):
            with pytest.raises(TypeError, match=r"takes no sample_weight: .*read from the data"):
                getattr(model(kind), method)(np.ones((4, 3)), sample_weight=np.ones(4))


# Reports and ledgers


@every_mode
def test_reports_and_ledgers_count_groups(kind, mode, seed):
    rng, payer = np.random.default_rng(seed), BudgetAccountant(1.0, 1e-6)
    X, groups = persons(rng, kind, mode, 30)
    options = {**options_of(kind, mode), "accountant": payer}
    if "exact" in mode:
        options["accountant"] = None
    fitted = model(kind, **options).fit(X, groups=groups)
    unit = "document" if holds_counts(kind, mode) else "sample"
    report = fitted.privacy_report_
    if "stream" in mode:
        assert "disjoint" in report.notes[-1]
    assert (report.unit, report.n_units) == (f"group of {unit}s", 40)
    assert {entry.unit for entry in payer.entries} <= {f"group of {unit}s"}
    if "exact" not in mode:
        assert f"replacing one group of {unit}s of 40" in str(report)
        assert payer.entries


# Several batches of a group


def stream_of(kind: str, **options: Any) -> Any:
    return model(kind, **({} if kind == "topics" else COMPONENTS["stream"]), **options)


@pytest.mark.parametrize("delta", [1e-6, 0])
@pytest.mark.parametrize("most", [2, 7])
@pytest.mark.parametrize("kind", ["topics", "components"])
def test_all_batches_of_a_group_cost_the_budget(kind, most, delta, tmp_path, seed):
    """What is charged for the first pays for m; every release has the noise of one of m."""
    rng, payer = np.random.default_rng(seed), BudgetAccountant(2.0, delta)
    estimator = stream_of(
        kind, epsilon=2.0, delta=delta, max_batches_per_group=most, accountant=payer
    )
    first, *later = (persons(rng, kind, "stream", 9) for _ in range(4))
    estimator.partial_fit(first[0], groups=first[1])
    charged = len(payer.entries)
    with pytest.raises(BudgetError):  # nothing is left of it
        model(kind, epsilon=0.01, delta=delta, accountant=payer).fit(first[0], groups=first[1])
    estimator.save(tmp_path / "model")
    for X, groups in later:
        estimator.partial_fit(X, groups=groups)
    assert len(payer.entries) == charged
    report = estimator.privacy_report_
    assert report.epsilon == pytest.approx(2.0, rel=1e-9)
    assert report.n_units == 4 * 40
    assert f"up to {most} batches" in report.notes[-1]
    assert sum("batches" in note for note in report.notes) == 1
    assert not any("disjoint" in note for note in report.notes)
    # The first batch by itself, m times over, and m of the later ones.
    last = report.rows[-1]
    if delta:
        assert last.mu * np.sqrt(most) <= full_mu(2.0, delta) * (1 + 1e-9)
        assert last.mu * np.sqrt(most) >= full_mu(2.0, delta) * 0.999
    else:
        assert last.epsilon * most == pytest.approx(2.0)
    loaded = type(estimator).load(tmp_path / "model")
    loaded.partial_fit(later[0][0], groups=later[0][1])
    assert f"up to {most} batches" in loaded.privacy_report_.notes[-1]
    assert loaded.privacy_report_.epsilon == pytest.approx(2.0, rel=1e-9)
    with pytest.raises(ValueError, match="must be that of the first batch"):
        loaded.set_params(max_batches_per_group=1).partial_fit(later[0][0], groups=later[0][1])


def full_mu(epsilon: float, delta: float) -> float:
    return gaussian_mu(epsilon, delta)


@pytest.mark.parametrize("kind", ["topics", "components"])
def test_a_ledger_with_less_than_all_batches_refuses(kind):
    rng, payer = np.random.default_rng(0), BudgetAccountant(1.99, 1e-6)
    X, groups = persons(rng, kind, "stream", 9)
    estimator = stream_of(kind, epsilon=2.0, max_batches_per_group=4, accountant=payer)
    with pytest.raises(BudgetError):
        estimator.partial_fit(X, groups=groups)
    assert not payer.entries


@pytest.mark.parametrize("kind", ["topics", "components"])
def test_more_batches_than_a_budget_has_room_for_are_refused(kind):
    X, groups = persons(np.random.default_rng(0), kind, "stream", 9)
    estimator = stream_of(kind, epsilon=0.01, delta=0.01, max_batches_per_group=100)
    with pytest.raises(ValueError, match="max_batches_per_group=100 leaves nothing"):
        estimator.partial_fit(X, groups=groups)


@pytest.mark.parametrize("kind", ["topics", "components"])
def test_batches_have_groups_all_or_none(kind):
    X, groups = persons(np.random.default_rng(0), kind, "stream", 9)
    for first, second in ((groups, None), (None, groups)):
        estimator = seeded(lambda g=first: stream_of(kind).partial_fit(X, groups=g))
        before = state(vars(estimator))
        with pytest.raises(ValueError, match="must come with groups, or none"):
            estimator.partial_fit(X, groups=second)
        assert state(vars(estimator)) == before


def test_a_stream_of_chunks_says_in_how_many_batches_a_group_may_be(seed):
    rng = np.random.default_rng(seed)
    source = [persons(rng, "components", "stream", 5) for _ in range(3)]
    estimator = stream_of("components", max_batches_per_group=3, epsilon=2.0)
    report = estimator.fit_chunks(iter(source)).privacy_report_
    assert "up to 3 batches" in report.notes[-1]
    assert report.epsilon == pytest.approx(2.0)
    with pytest.raises(ValueError, match="must come with groups, or none"):
        estimator.fit_chunks([source[0], source[1][0]])


def test_fits_are_disjoint_batches_whatever_streams_may_be(seed):
    """A fit deals every group into one batch, at the whole budget."""
    X, groups = persons(np.random.default_rng(seed), "components", "stream", 5)
    fitted = stream_of("components", max_batches_per_group=5).fit(X, groups=groups)
    report = fitted.privacy_report_
    assert "disjoint" in report.notes[-1]
    assert report.rows[0].mu == pytest.approx(full_mu(1.0, 1e-6))


# Caps


@every_mode
def test_a_cap_of_one_row_fits_as_many_rows_as_groups(kind, mode, seed, monkeypatch):
    """What is read of each group is one row, in all ways to fit."""
    rng, most = np.random.default_rng(seed), []
    X, groups = persons(rng, kind, mode, 60)
    together = SampleChunks.__mro__[1]._together

    def watching(self: Any, *args: Any) -> Any:
        rows, units = together(self, *args)
        most.append(int(units.sizes.max()))
        return rows, units

    monkeypatch.setattr(SampleChunks.__mro__[1], "_together", watching)
    seeded(
        lambda: fit_whole(model(kind, **options_of(kind, mode), max_rows_per_group=1), (X, groups))
    )
    assert set(most) == {1}
