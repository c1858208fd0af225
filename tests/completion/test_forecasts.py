"""Forecasts of completions against what comes out of them."""

import math
from itertools import product
from unittest import mock

import numpy as np
import pytest
from internals import shared_model
from sklearn.base import clone
from small_completions import MODELS, SHAPE, SLICE, TASTES, build, tastes

from sktensor_dp import (
    BudgetAccountant,
    PrivateCPCompletion,
    PrivateTuckerCompletion,
    unsafe_seeded_noise,
)
from sktensor_dp.completion import forecast
from sktensor_dp.completion.entry_forecast import forecast_entry_errors
from sktensor_dp.completion.panel import Panel
from sktensor_dp.completion.plan import Assumed, plan_entries

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:Some values are outside of the bounds"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
]

N, D, EACH, COUNT = 8000, 60, 40, 3
KNOWN = {"deviation": 1.5, "bias_deviation": 0.6, "component_share": 0.15}


def values(seed):
    rng = np.random.default_rng(seed)
    X = np.argwhere(rng.random((N, D)) < EACH / D)
    U, V = rng.standard_normal((N, COUNT)), rng.standard_normal((D, COUNT))
    # Of the size that is told, not only on average: columns are few.
    V /= np.sqrt(np.mean(V**2, axis=0))
    columns = rng.standard_normal(D)
    y = 0.6 * rng.standard_normal(N)[X[:, 0]]
    y += 0.6 * ((columns - columns.mean()) / columns.std())[X[:, 1]]
    y += 1.5 * math.sqrt(0.15 / COUNT) * np.einsum("ek,ek->e", U[X[:, 0]], V[X[:, 1]])
    y += 1.5 * math.sqrt(1 - 2 * 0.16 - 0.15) * rng.standard_normal(len(X))
    test = rng.random(len(X)) < 0.1
    return (X[~test], y[~test]), (X[test], y[test])


def errors(model, data, test):
    own = model.fold_in(*data)
    return [
        float(np.sqrt(np.mean((found - test[1]) ** 2)))
        for found in (model.predict(test[0]), own.predict(test[0]))
    ]


@pytest.mark.parametrize(
    "epsilon", [1.0, *(pytest.param(e, marks=pytest.mark.nightly) for e in (0.5, 2.0, 5.0, 10.0))]
)
def test_predictions_and_own_entries_do_as_forecast(epsilon, seed):
    """By sums, by sums and pairs, and by values."""
    data, test = values(seed)
    model = PrivateCPCompletion(
        4, bounds=(-5, 5), shape=(N, D), epsilon=epsilon, random_state=seed
    )  # fmt: skip
    said = model.forecast(len(data[1]), (N, D), **KNOWN)
    with unsafe_seeded_noise(seed):
        model.fit(*data)
    assert said.perturbation == model.perturbation_
    predicted, folded = errors(model, data, test)
    # 32,000 values to predict, whose errors of 8000 people's levels are shared by four, err by
    # half of sqrt(2 / 8000), 1 %, at most; noise of the biases, of whose size the model learns
    # from 60 columns, by as much again. The rest is what normal factors and plain ridges leave
    # out of the theory.
    assert said.of_model == pytest.approx(predicted, rel=0.05)
    assert said.of_fold_in == pytest.approx(folded, rel=0.05)
    # To say the mean alone would be off by more.
    assert said.of_mean > 1.1 * max(predicted, folded)


def test_more_budget_and_more_entries_are_never_forecast_to_be_worse():
    assumed = Assumed.given(4.0, None, None, None, 3)
    for way in ("input", "sufficient_statistics"):
        before = (math.inf,) * 6
        for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 40.0, math.inf):
            planned = plan_entries(
                10**6, (10**4, 200), 3, epsilon=epsilon, delta=1e-6, perturbation=way, max_iter=None
            )  # fmt: skip
            now = forecast_entry_errors(10**6, (10**4, 200), planned, assumed, 3)
            assert now[1] <= now[0]
            now = (*now[:4], *now.bias_variances[0])
            assert all(one <= other * (1 + 1e-12) for one, other in zip(now, before, strict=True))
            before = now


def test_predictions_without_own_entries_do_as_forecast(seed):
    """The less epsilon, the farther the mean is off, which `predict` shares and `fold_in` not."""
    rng, n, d = np.random.default_rng(seed), 3000, 40
    X = np.argwhere(rng.random((n, d)) < 0.5)
    y = 5 + 0.5 * rng.standard_normal(n)[X[:, 0]] + np.linspace(-1, 1, d)[X[:, 1]]
    y = np.clip(y + 0.6 * rng.standard_normal(len(X)), 0, 10)
    before, errors = (0.0, 0.0), []
    for epsilon in (10.0, 1.0, 0.1, 0.03, 0.003):
        model = PrivateCPCompletion(0, bounds=(0, 10), shape=(n, d), unit_mode=0, epsilon=epsilon)
        said = model.forecast(len(y), deviation=float(y.std()), bias_deviation=0.55)
        now = (said.mean_error, said.of_predict)
        assert now > before
        assert ("can be found" in str(said)) == (epsilon >= 1)
        assert said.of_fold_in < 0.8 * said.of_predict
        before = now
        with unsafe_seeded_noise(seed):
            model.fit(X, y)
        errors.append(np.mean((model.predict(X) - y) ** 2) / said.of_predict**2)
    # With noise in one mean, the squared error is that of the mean's, a chi-square of one degree.
    assert errors[0] == pytest.approx(1, rel=0.1)
    assert max(errors) < 12


# At .02 chance gives single values sizes of .5 and more that are 0: beyond the tolerance.
@pytest.mark.parametrize(
    ("epsilon", "unit_mode"), [(0.02, 0), *product([0.1, 0.5, 1.0, 4.0], [0, None])]
)
def test_item_averages_are_as_hidden_as_forecast(epsilon, unit_mode, seed):
    rng, shape = np.random.default_rng(seed), (3000, 200)
    X = np.argwhere(rng.random(shape) < 25 / 200)
    items = 0.4 * rng.standard_normal(200)
    items -= items.mean()
    y = 3 + 0.4 * rng.standard_normal(3000)[X[:, 0]] + items[X[:, 1]]
    y = np.clip(y + 0.8 * rng.standard_normal(len(X)), 1, 5)
    model = PrivateCPCompletion(
        0, bounds=(1, 5), shape=shape, unit_mode=unit_mode, epsilon=epsilon
    )  # fmt: skip
    said = model.forecast(len(y))  # of the parameter `shape`
    with unsafe_seeded_noise(seed):
        found = model.fit(X, y).biases_[1]
    # The size of the items' differences errs by a 20th of .4, four times at most, and the theory,
    # which knows no clamped values and no estimated sizes, by as much as once.
    error = math.sqrt(np.mean((found - found.mean() - items) ** 2))
    assert said.bias_errors[1] == pytest.approx(error, abs=0.1)
    (effects,) = shared_model(model).effects
    assert effects.is_hidden == (1 in said.hidden_modes) == (epsilon < 0.2)
    # The share of persons with values is released too, which noise puts below 1.
    assert said.mean_error == pytest.approx(model.mean_error_, rel=0.5)


@pytest.mark.parametrize(
    ("model", "shape", "said"),
    [
        ({"epsilon": 1.0}, (2000, 40), "; from about 4,200 persons or epsilon 2.24 on this is"),
        ({"rank": 2}, (300, 40, 12), "of mode 1 and of mode 2 are as by chance, not for those who"),
        ({"rank": 2}, (300, 40, 12), "; from about 6,300 persons on this is measured"),
        ({"epsilon": 2.0}, (2600, 40), "panel, they are several times larger, or need several"),
        ({"delta": 0}, (9000, 40), "; with a delta above 0 this is measured where"),
        ({}, (9000, 1100), "; of more than 1,024 rows this is not measured."),
        ({}, (9000, 300), "; from about"),
        ({}, (300, 2), ""),
        ({"unit_mode": None}, (300, 40), ""),
    ],
    ids=str,
)
def test_fits_and_forecasts_say_where_errors_of_chains_are_too_small(model, shape, said):
    model = build(**{"rank": 0, "unit_mode": 0, **model})
    about = model.forecast(5 * shape[0], shape)
    assert said in about.chains if said else not about.chains
    assert about.chains in str(about)
    assert ("stays= says" in str(about)) == bool(said)
    persons = np.repeat(np.arange(shape[0]), 5)
    rows = np.random.default_rng(0).integers(0, shape[1:], (len(persons), len(shape) - 1))
    X = np.unique(np.column_stack([persons, rows]), axis=0)
    y = np.random.default_rng(1).choice(model.bounds, len(X))
    report = model.set_params(shape=shape).fit(X, y).privacy_report_
    is_hidden = "not for those who keep" in about.chains
    # A fit says it by the number of entries that it found.
    said = about.chains.partition(";")[0]
    assert any(said and note.startswith(said) for note in report.notes) == is_hidden
    if len(shape) == 2 and model.unit_mode == 0:
        is_released = "row_concurrences" in {row.name for row in report.rows}
        assert is_released == (shape[1] == 40 and shape[0] > 2000 and model.delta > 0)


@pytest.mark.parametrize("stay", [3, 12])
def test_forecasts_speak_of_chains_of_each_mode_and_reports_of_those_found(stay, seed):
    """Of persons with entries in some months next to each other, and in items by chance."""
    rng, shape = np.random.default_rng(seed), (4000, 100, 12)
    persons = np.repeat(np.arange(4000), 15)
    months = rng.integers(0, 13 - stay, 4000)[persons] + rng.integers(0, stay, len(persons))
    X = np.unique(np.column_stack([persons, rng.integers(0, 100, len(persons)), months]), axis=0)
    model = PrivateCPCompletion(0, bounds=(1, 5), shape=shape, unit_mode=0, epsilon=4.0)
    said = model.forecast(len(X)).chains
    assert said.startswith("Errors are for persons whose rows of each mode are as by chance.")
    assert "panel, in mode 2 they are several times larger, or need" in said
    assert "persons; in mode 1 they are larger than stated;" in said
    with unsafe_seeded_noise(seed):
        notes = model.fit(X, rng.uniform(1, 5, len(X))).privacy_report_.notes
    assert [note for note in notes if "keep to few rows of mode 2, by rel" in note] == [
        "Persons keep to few rows of mode 2, by released concurrences: errors count that, and "
        "exceed forecasts. Where they are large, averages need not be alike."
    ] * (stay == 3)  # and none of mode 1
    assert sum("rows of mode 1 are as by chance, not for" in note for note in notes) == 1
    assert sum("keep to few rows of mode 1, by" in note for note in notes) == 0


@pytest.mark.parametrize(("rank", "n_items", "each"), [(3, 20, 5), (6, 30, 10)])
def test_more_persons_are_never_forecast_to_show_none_where_fewer_show_some(rank, n_items, each):
    """Equal components do not all vanish at once: noise spreads their eigenvalues."""
    numbers = np.geomspace(1000, 40_000, 24).astype(int)
    found = [
        PrivateCPCompletion(rank, bounds=(1, 5), unit_mode=0, epsilon=3.0)
        .forecast(each * int(n), (int(n), n_items), component_share=0.3)
        .n_components
        for n in numbers
    ]
    first = np.flatnonzero(found)[0]
    assert min(found[first:]) > 0
    assert found[0] == 0
    assert found[-1] == rank


def test_a_forecast_begins_with_rank_0_where_a_search_makes_all_worse():
    """Twice the persons, of whom components are sought, tell changes of months better, too."""
    shapes = [(n, 40, 12) for n in (3000, 6000)]
    sought = [
        PrivateCPCompletion(3, bounds=(1, 5), unit_mode=0, epsilon=4.0).forecast(
            int(9.5 * shape[0]), shape, stays=3
        )
        for shape in shapes
    ]
    assert [said.seeks_components for said in sought] == [False, True]
    none_sought, error = (said.change_error for said in sought)
    assert none_sought > 1.5 * error
    # To print a forecast of three modes takes seconds, as it says what would help.
    assert str(sought[1]).startswith("rank=0 is better here: no components are expected")
    alone = sought[1].alone.change_error
    assert alone < error < 1.3 * alone


@pytest.mark.parametrize("model", MODELS)
def test_fewer_entries_than_units_are_never_forecast_to_do_as_well(model):
    before = (math.inf,) * 3
    for n in (1, 2, 10, 100, 1000, 10_000, 50_000, 1_000_000):
        said = build(model, unit_mode=0).forecast(n, (50_000, 300, 4))
        now = (said.mean_error, *said.bias_errors[1:])
        assert all(0 < one <= other for one, other in zip(now, before, strict=True))
        assert (said.verdict == "likely too few") == (n <= 10)
        before = now


@pytest.mark.filterwarnings("ignore:.*do most have a single value")
@pytest.mark.parametrize(
    ("shared", "each", "delta"),
    [
        *(((300,), each, 1e-6) for each in (0.06, 1.0, 4.0)), ((60, 40), 3.0, 1e-6),
        ((20, 15, 10), 20.0, 1e-6), ((60,), 3.0, 0.0),
        *(pytest.param(*case, marks=pytest.mark.nightly) for case in (
            ((300,), 0.3, 1e-6), ((300,), 1.5, 1e-6), ((300,), 20.0, 1e-6), ((30, 12), 10.0, 1e-6),
            ((60,), 12.0, 0.0),
        )),
    ],
)  # fmt: skip
def test_biases_err_as_forecast_of_few_entries_and_of_further_modes(shared, each, delta, seed):
    rng, n = np.random.default_rng(seed), 20_000 if each < 10 else 4000
    n_with = min(int(each * n), n)  # one of each unit, and further ones of any
    units = np.append(np.arange(n_with), rng.integers(0, n_with, int(each * n) - n_with))
    rows = rng.integers(0, shared, (len(units), len(shared)))
    X = np.unique(np.column_stack([units, rows]), axis=0)
    biases = [rng.standard_normal(d) for d in shared]
    biases = [0.4 * (one - one.mean()) / one.std() for one in biases]
    y = 3 + 0.4 * rng.standard_normal(n)[X[:, 0]] + 0.8 * rng.standard_normal(len(X))
    y += sum(one[rows] for one, rows in zip(biases, X.T[1:], strict=True))
    model = PrivateCPCompletion(
        0, bounds=(0, 6), shape=(n, *shared), unit_mode=0, epsilon=2.0, delta=delta
    )
    modes = len(shared) + 1
    said = model.forecast(len(y), deviation=math.hypot(0.8, 0.4 * modes**0.5), bias_deviation=0.4)
    with unsafe_seeded_noise(seed):
        model.fit(X, np.clip(y, 0, 6))
    parts = zip(model.biases_[1:], biases, said.bias_errors[1:], strict=True)
    ratios = np.concatenate([(found - found.mean() - one) / error for found, one, error in parts])
    # The root mean square of m rows errs by 1 / sqrt(2 m), four times at most; that values are less
    # far from their unit's level than from the mean leaves up to a fifth out of the theory.
    margin = 0.2 + 4 / math.sqrt(2 * len(ratios))
    # Single entries tell no deviation: effects may then be drawn to 0, and err by what they are.
    most = 1 + margin if each != 1 else 1.1 * 0.4 / said.bias_errors[1]
    assert 1 - margin < math.sqrt(np.mean(ratios**2)) < most
    # Single entries tell no deviation, which is half the range then at most.
    assert 0.75 < model.mean_error_ / said.mean_error < (1.3 if each > 1 else 3 / said.of_mean)
    if len(shared) > 1:  # none of the modes' variance is left out
        error = math.sqrt(np.mean((model.predict(X) - y) ** 2))
        assert error == pytest.approx(said.of_predict, rel=0.03)


@pytest.mark.parametrize("model", MODELS)
def test_forecasts_know_who_can_fold_in(model):
    assert math.isfinite(build(model, rank=2).forecast(5000, (50, 20, 3)).of_fold_in)
    slices = build(model, unit_mode=0).forecast(5000, (50, 20))
    assert slices.of_fold_in == slices.of_model


@pytest.mark.parametrize("rank", [0, 1])
def test_components_that_are_not_asked_for_explain_nothing(rank):
    said = PrivateCPCompletion(rank, bounds=(0, 1), epsilon=20.0, perturbation="input").forecast(
        10**6, (5000, 300)
    )
    assert (said.of_model < said.of_biases) == said.finds_components == (rank > 0)
    assert said.of_fold_in <= said.of_biases


@pytest.mark.parametrize(("shape", "epsilon"), [((5000, 300), 20.0), ((100_000, 20), 2.0)])
def test_components_that_hold_nearly_nothing_are_not_found(shape, epsilon):
    model = PrivateCPCompletion(2, bounds=(0, 1), epsilon=epsilon)
    for share in (0.0, 1e-3, 0.3):
        said = model.forecast(10**6, shape, component_share=share)
        assert said.finds_components == (share > 0.1) == (said.of_fold_in < 0.9 * said.of_biases)


def sliced(epsilon, **options):
    return PrivateCPCompletion(
        4, bounds=(-4, 4), unit_mode=0, shape=TASTES, epsilon=epsilon, **options
    )


def test_biases_without_noise_err_alike_with_and_without_delta():
    found = [sliced(math.inf, delta=delta).forecast(5000, TASTES) for delta in (0.0, 1e-6)]
    assert found[0].bias_errors[1:] == pytest.approx(found[1].bias_errors[1:], rel=1e-6)


@pytest.mark.parametrize(("epsilon", "share"), [(0.5, 0.0), (2.5, 0.5), (math.inf, 0.5)])
def test_forecasts_say_what_comes_out_of_what_is_assumed(epsilon, share, seed):
    data, test = tastes(seed, share)
    model = sliced(epsilon, random_state=seed)
    said = model.forecast(
        len(data[1]), TASTES, deviation=1.0, bias_deviation=0.0, component_share=share
    )
    with unsafe_seeded_noise(seed):
        model.fit(*data)
    assert said.of_mean == 1.0
    if share == 0:
        assert said.of_model == said.of_biases
        assert not said.finds_components
    # Two components, of 60 rows each, differ in size from draw to draw: their share of the
    # variance deviates by half of sqrt(2 / 60 / 2), 6 %, of which the error is half. Without
    # components it would be off by 35 %.
    assert said.of_model == pytest.approx(errors(model, data, test)[1], rel=0.1)


@pytest.mark.parametrize(
    ("shape", "share", "each", "epsilon", "error"),
    [  # Means of fits to five drawn components of equal variance, beside clipping of values.
        ((60_000, 2000), 0.5, 36, 0.5, 0.985), ((3000, 300), 0.3, 36, 4.0, 1.0),
        ((3000, 300), 0.3, 36, 6.0, 0.957), ((12_000, 300), 0.3, 36, 1.0, 0.976),
        ((500, 300), 0.3, 36, math.inf, 0.9615),
    ],
)  # fmt: skip
def test_few_components_grow_first(shape, share, each, epsilon, error):
    """Where noise leaves room for one direction, it is not all that people differ by."""
    errors, epsilons = [], sorted({epsilon, 0.25, 0.35, 0.7, 1.0, 2.0, 5.0, math.inf})
    for one in epsilons:
        model = PrivateCPCompletion(5, bounds=(-4, 4), unit_mode=0, shape=shape, epsilon=one)
        said = model.forecast(
            each * shape[0], deviation=1.0, bias_deviation=0.0, component_share=share
        )
        errors.append(said.of_fold_in)
    assert errors == sorted(errors, reverse=True)
    assert errors[epsilons.index(epsilon)] == pytest.approx(error, rel=0.03)


def test_odds_are_even_only_where_components_are_sought_with_less(monkeypatch):
    model = PrivateCPCompletion(3, bounds=(0, 6), unit_mode=0, epsilon=2.0)
    said = model.forecast(36_000, (1800, 100), component_share=0.3)
    with monkeypatch.context() as patched:  # plans tell; a small fit gives this advice in a warning
        asked = mock.Mock(wraps=forecast.finds_components)
        patched.setattr(forecast, "finds_components", asked)
        helps = said.what_helps()
    assert asked.call_count <= 2
    for name, less in (("units", helps["units"] - 1), ("epsilon", 0.99 * helps["epsilon"])):
        epsilon = less if name == "epsilon" else 2.0
        n = int(less) if name == "units" else 1800
        other = clone(model).set_params(epsilon=epsilon).forecast(20 * n, (n, 100))
        assert not other.seeks_components
    assert said.advice().endswith(f"{helps['epsilon']:g}: with less a fit seeks none.")


def test_advice_names_what_helps_most_and_it_does():
    model = PrivateCPCompletion(3, bounds=(1, 5), unit_mode=0, epsilon=3.0)
    asked = (120_000, (8000, 60, 4))
    said = model.forecast(*asked)
    helps = said.what_helps()
    # 1.3 times the ratings of each, 1.4 times the people, or 1.7 times the epsilon.
    assert list(helps) == ["each", "units", "epsilon"]
    start = "If components hold 8% of the variance, one could be found with "
    assert said.advice().startswith(f"{start}{helps['each']:,.0f} entries of each unit")
    assert said.advice().endswith(
        ": the least; tests took up to three times as many units for even odds."
    )
    changed = {
        "each": (model, int(helps["each"]) * 8000, asked[1]),
        "units": (model, int(helps["units"]) * 15, (int(helps["units"]), 60, 4)),
        "epsilon": (clone(model).set_params(epsilon=helps["epsilon"]), *asked),
    }
    assert all(one.forecast(*numbers).finds_components for one, *numbers in changed.values())
    assert not said.finds_components
    model_of_more, *numbers = changed["each"]
    assert model_of_more.forecast(*numbers).what_helps() == {}  # nothing less than there is
    # No epsilon helps 943 people with 1,682 films; no number does without a delta.
    assert list(model.forecast(100_000, (943, 1682)).what_helps()) == ["units"]
    assert "delta above 0" in clone(model).set_params(delta=0).forecast(*asked).advice()
    # Of many persons of few rows components can be found where no value of theirs shows any.
    of_values = clone(model).set_params(epsilon=2.0, unit_mode=None)
    for shape, is_better in (((3000, 60), True), ((300, 60), False)):
        asked = 27 * shape[0], shape
        of_persons = clone(of_values).set_params(unit_mode=0).forecast(*asked)
        assert of_persons.finds_components == is_better
        assert ("unit_mode=0" in of_values.forecast(*asked).advice()) == is_better
    exact = clone(model).set_params(epsilon=math.inf, unit_mode=None).forecast(100, (50, 10))
    assert exact.advice().startswith("Not even more data would show components")
    assert "Noise and chance hide biases" in str(exact)


@pytest.mark.parametrize("unit_mode", [0, None])
def test_a_further_mode_does_not_make_a_forecast_better(unit_mode):
    model = PrivateCPCompletion(3, bounds=(1, 5), unit_mode=unit_mode, epsilon=1.0)
    two, three = (model.forecast(100_000, shape) for shape in ((4000, 60), (4000, 60, 6)))
    assert two.of_biases <= three.of_biases
    assert two.what_helps()["epsilon"] < three.what_helps()["epsilon"]


def test_persons_of_few_entries_in_a_panel_compare_fewer_rows():
    usual, few = (Panel(12, 3, 6000, each).concurrences for each in (None, 4.0))
    assert 0.3 * usual.sum() < few.sum() < 0.8 * usual.sum()
    model = PrivateCPCompletion(0, bounds=(1, 5), unit_mode=0, epsilon=4.0)
    asked = {"shape": (6000, 30, 12), "stays": 3, "deviation": 0.85, "bias_deviation": 0.3}
    # Fits to 30,000 drawn ratings, most of persons with one or two, state 0.24 to 0.7.
    assert 0.2 < model.forecast(30_000, **asked).change_error < 0.4


def test_forecasts_show_what_they_assume():
    table = str(sliced(2.0).forecast(120_000, TASTES, deviation=1.0, component_share=0.5))
    for part in ("deviation of 1,", "each mode one of 0.4", "components 50%", "components too",
                 "in mode 1, and with rank=0 by"):  # fmt: skip
        assert part in table
    alone = sliced(2.0).set_params(rank=0)
    tucker = build(PrivateTuckerCompletion, unit_mode=0, epsilon=2.0)
    searched, least = (one.forecast(120_000, TASTES) for one in (tucker, alone))
    assert searched.alone.bias_errors == pytest.approx(least.bias_errors, nan_ok=True)
    assert f"and with PrivateCPCompletion(0) by {least.bias_errors[1]:.3g}" in str(searched)
    assert f"as others errs by {least.bias_errors[1]:.3g} in mode 1; the mean by" in str(least)
    # The search has taken noise from the mean, too, where it finds components.
    assert searched.alone.mean_error == least.mean_error < searched.mean_error_if_found
    none = sliced(2.0).set_params(rank=1).forecast(12_000, TASTES)  # is sought in vain
    assert not none.finds_components
    for part in ("the one component of rank 1 4% of", " if some are found all the same, and with "):
        assert part in str(none)
    assumed = str(sliced(2.0).forecast(120_000, TASTES))
    assert "deviation of 2," in assumed
    of_mean, two_kinds = "the mean (assumed, deviation=)", "Values of two kinds deviate"
    assert of_mean in assumed
    assert two_kinds in assumed
    assert of_mean not in table
    assert two_kinds not in table
    entries = PrivateCPCompletion(4, bounds=(-4, 4)).forecast(N * EACH, (N, D))
    few = sliced(0.7).forecast(8000, TASTES)
    assert "Noise and chance may hide biases, which differ by 0.8: the expected error" in str(few)
    assert few.advice() in str(few)
    assert str(sliced(0.1).forecast(1200, TASTES)).startswith("predict() will be no better than")
    assert "own entries folded in" in str(entries)


all_models = pytest.mark.parametrize("model", MODELS)


@all_models
def test_forecasts_cost_nothing(model):
    accountant = BudgetAccountant(10.0, 1e-6)
    rich, poor = (build(model, accountant=accountant, epsilon=e) for e in (10.0, 0.01))
    assert rich.forecast(10**6, (1000, 1000)).finds_components
    assert poor.forecast(100, (50, 50)).mean_is_all
    assert "The mean is all there is, with noise in it" in str(poor.forecast(100, (50, 50)))
    for options in (SLICE, {"perturbation": "output"}, {"perturbation": "gradient"}):
        forecast = clone(poor).set_params(**options).forecast(100, SHAPE)
        # Of so few values noise hides the mean too, which may lie anywhere between the bounds, and
        # the biases of a third mode.
        most = math.hypot(forecast.of_mean, 8 / math.sqrt(12), forecast.bias_deviation)
        assert 0 < forecast.of_biases <= most * 1.01
    assert accountant.entries == ()
