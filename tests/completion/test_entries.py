"""Private completions: budgets, predictions, parameters and use with scikit-learn."""

import re
import warnings
from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
from sklearn.metrics import r2_score
from small_completions import INF, MODELS, PERTURBATIONS, SHAPE, SLICE, X0, Y0, build, table

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    NotEnoughDataWarning,
    PrivateCPCompletion,
    PrivateTuckerCompletion,
)
from sktensor_dp.completion.absent_components import expected_warnings
from sktensor_dp.completion.plan import check_model_size, plan_entries, plan_persons
from sktensor_dp.tensor.normal_equations import posterior_rows

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
nightly = pytest.mark.nightly
all_models = pytest.mark.parametrize("model", MODELS)
# What persons share is the same for both models.
all_ways = pytest.mark.parametrize(
    ("perturbation", "model"),
    [
        *product(PERTURBATIONS, MODELS), ("slice", PrivateCPCompletion),
        pytest.param("slice", PrivateTuckerCompletion, marks=nightly),
    ],
)  # fmt: skip


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 3.0, 30.0])
def test_plans_cost_all_that_was_asked_for_and_no_more(epsilon, delta):
    """The sum of a pure and a Gaussian part is what is left when it is all spent."""
    plans = [plan_persons(SHAPE, 2, 0, epsilon, delta)]
    known = {"epsilon": epsilon, "delta": delta, "max_iter": None}
    for way in PERTURBATIONS:
        plans.append(plan_entries(len(Y0), SHAPE, 2, perturbation=way, **known))
    for plan in plans:
        total = plan.releases.cost.epsilon_at(delta)
        assert epsilon * (1 - 1e-6) <= total <= epsilon * (1 + 1e-9)


def test_the_default_is_chosen_by_public_numbers():
    assert build(epsilon=INF).fit(X0, Y0).perturbation_ == "input"
    with pytest.warns(
        NotEnoughDataWarning, match="Components are not sought: .*perturbation='input'"
    ):
        fitted = build(epsilon=0.1).fit(X0, Y0)
    assert fitted.perturbation_ == "sufficient_statistics"
    assert [row.name for row in fitted.privacy_report_.rows] == ["row_sums"]
    assert fitted.n_components_ == 0
    # The same of persons, who would all be recommended the same without a word.
    with pytest.warns(NotEnoughDataWarning, match="everybody is recommended nearly the same"):
        assert build(epsilon=0.1, unit_mode=0, shape=SHAPE).fit(X0, Y0).n_components_ == 0
    # Nobody who asks for no components is told that there are none.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="Biases of rows of mode")
        build(rank=0, epsilon=INF).fit(X0, Y0)
        fitted = build(rank=0, epsilon=0.1).fit(X0, Y0)
    assert fitted.transform(X0).shape == (len(X0), 0)
    for perturbation in PERTURBATIONS:
        fitted = build(rank=0, perturbation=perturbation).fit(X0, Y0)
        assert fitted.weights_.shape == (0,)
        assert not fitted.privacy_report_.composition.unused


@all_models
@pytest.mark.parametrize("perturbation", ["input", "sufficient_statistics"])
def test_without_components_features_are_0_as_the_warning_says(model, perturbation):
    of_none = r"rank=0" if model is PrivateCPCompletion else r"PrivateCPCompletion\(0\)"
    with pytest.warns(NotEnoughDataWarning, match=f"transform returns 0.* {of_none} asks for none"):
        fitted = build(model, perturbation=perturbation, epsilon=0.1).fit(X0, Y0)
    assert fitted.n_components_ == 0
    assert not fitted.transform(X0).any()


def test_steps_of_descent_count_as_iterations_and_leave_rows_never_observed_at_0():
    seen = X0[:, 1] > 0
    fitted = build(perturbation="gradient", max_iter=1).fit(X0[seen], Y0[seen])
    assert fitted.n_iter_ == 1
    assert fitted.factors_[1][1:].any()
    assert not fitted.factors_[1][0].any()


def test_a_core_is_called_slow_only_where_a_fit_solves_for_it():
    model, known = build(PrivateTuckerCompletion), {"epsilon": 1.0, "delta": 1e-6, "max_iter": None}

    def is_slow(shape, perturbation):
        ranks = (51, 51) if len(shape) == 2 else (14, 14, 14)
        plan = plan_entries(2000, shape, max(ranks), perturbation=perturbation, **known)
        return bool(expected_warnings(model, plan, ranks, 2000, shape))

    assert not is_slow((60, 60), "input")
    assert not is_slow((60, 60), "output")
    assert is_slow((60, 60), "gradient")
    assert is_slow((60, 60, 60), "input")
    # Memory, too, is counted for all pairs of its numbers only there.
    too_much = pytest.raises(ValueError, match=r"GB of memory.* smaller ranks\. Coord")
    for perturbation, refused in (("input", nullcontext()), ("gradient", too_much)):
        plan = plan_entries(2000, (250, 250), 200, perturbation=perturbation, **known)
        with refused:
            check_model_size(plan, (250, 250), (200, 200), 200, full_core=True)


@pytest.mark.parametrize(("options", "most"), [({}, 4), (SLICE, 2)])
def test_reports_count_the_components_that_ranks_allow(options, most):
    fitted = build(PrivateTuckerCompletion, rank=(9, 2, 2), epsilon=INF, **options).fit(X0, Y0)
    assert f"Components found: {fitted.n_components_} of {most}." in fitted.privacy_report_.notes


@all_ways
@pytest.mark.parametrize(
    "shape",
    [(5, 4, 6, 3), *(pytest.param(s, marks=nightly) for s in ((12, 9), (9, 8, 6)))],
    ids=str,
)
def test_any_number_of_modes(shape, perturbation, model):
    X, y, _ = table(shape)
    options = {"perturbation": perturbation}
    if perturbation == "slice":
        options = {"shape": shape, "unit_mode": 1}
    fitted = build(model, epsilon=20.0, **options).fit(X, y)
    everywhere = np.argwhere(np.ones(shape))
    values = fitted.predict(everywhere)
    np.testing.assert_allclose(fitted.complete().ravel(), values)
    assert ((values >= -4) & (values <= 4)).all()
    assert [len(bias) for bias in fitted.biases_] == list(fitted.shape_) == list(shape)
    n_features = 2 if model is PrivateCPCompletion else 2 * len(shape)
    assert fitted.transform(X).shape == (len(X), n_features)
    assert fitted.score(X, y) == pytest.approx(r2_score(y, fitted.predict(X)))
    if model is PrivateTuckerCompletion and perturbation != "slice":
        for factor in fitted.factors_:
            np.testing.assert_allclose(factor.T @ factor, np.eye(2), atol=1e-9)
        for mode in range(len(shape)):
            unfolded = np.moveaxis(fitted.core_, mode, 0).reshape(2, -1)
            gram = unfolded @ unfolded.T
            assert abs(gram[0, 1]) <= 1e-9 * max(gram[0, 0], 1e-300)
            assert gram[0, 0] >= gram[1, 1]


def test_features_add_up_to_predictions():
    fitted = build(epsilon=INF, bounds=(-40, 40)).fit(X0, Y0)
    offsets = fitted.mean_ + sum(b[rows] for b, rows in zip(fitted.biases_, X0.T, strict=True))
    np.testing.assert_allclose(fitted.predict(X0), offsets + fitted.transform(X0).sum(axis=1))


@all_ways
def test_unseen_rows_get_mean_and_known_biases(perturbation, model):
    options = {"unit_mode": 0} if perturbation == "slice" else {"perturbation": perturbation}
    options |= {"epsilon": 30.0, "bounds": (-40, 40), "shape": (10, 8, 9)}
    fitted = build(model, **options).fit(X0, Y0)
    known = fitted.mean_ + fitted.biases_[0][3] + fitted.biases_[1][2]
    # As encoders mark what they do not know.
    assert fitted.predict([[3, 2, -1]])[0] == pytest.approx(known)
    assert fitted.predict([[-1, -1, -1]])[0] == pytest.approx(fitted.mean_)
    assert not fitted.transform([[-1, -1, -1]]).any()
    if perturbation == "slice":
        return
    np.testing.assert_allclose(fitted.predict([[3, 2, 7]])[0], known)
    assert fitted.biases_[2][7] == 0


@all_models
def test_rows_beyond_a_table_are_unseen_where_no_shape_is_given(model):
    fitted = build(model, epsilon=30.0).fit(X0, Y0)
    for question in (fitted.predict, fitted.transform):
        np.testing.assert_array_equal(question([[3, 2, -1]]), question([[3, 2, 100]]))


def test_a_transform_to_nothing_but_0_names_what_gives_weights_of_units():
    fitted = build(epsilon=INF, shape=SHAPE, unit_mode=0).fit(X0, Y0)
    assert fitted.n_components_
    with pytest.warns(UserWarning, match=r"returns 0 .* by fold_in\(X, y\)\.parameters"):
        assert not fitted.transform(X0).any()


@pytest.mark.filterwarnings("ignore:No row of X is of a unit that was folded in")
@pytest.mark.filterwarnings("ignore:transform returns 0 everywhere")
@pytest.mark.parametrize("unit_mode", [None, 0])
def test_rows_beyond_a_given_shape_are_refused_at_every_door(unit_mode):
    fitted = build(epsilon=INF, shape=SHAPE, unit_mode=unit_mode).fit(X0, Y0)
    known, beyond, unit = [[3, 2, 5]], [[3, 2, 6]], [[9, 2, 5]]
    own = fitted.fold_in(unit, [1.0])
    doors = [fitted.predict, fitted.transform, own.predict, lambda X: fitted.fold_in(X, [1.0])]
    for door in doors:
        door(known)
        with pytest.raises(ValueError, match=r"X has rows beyond shape=\(9, 8, 6\) in mode 2: "):
            door(beyond)
    assert np.isfinite(own.predict(unit))
    for wrong in ({"exclude": beyond}, {"exclude": [8]}, {"context": {2: 6}}):
        with pytest.raises(ValueError, match=r" rows beyond shape=\(9, 8, 6\) in mode "):
            fitted.recommend(None, 2, **{"context": {2: 1}, **wrong})
    with pytest.raises(ValueError, match="row must be of mode 1"):
        fitted.similar_rows(1, 8)
    if unit_mode is None:
        for door in (fitted.predict, lambda of: fitted.predict_rows([of[0][0]], context={2: 1})):
            with pytest.raises(ValueError, match=r"beyond shape=\(9"):
                door(unit)
    else:
        np.testing.assert_array_equal(fitted.predict(unit), fitted.predict(known))


def test_values_are_clamped_to_the_bounds():
    y = np.where(Y0 > 0, 1e300, -1e300)
    for options in ({"epsilon": INF}, {"epsilon": INF, **SLICE}):
        far, near = (build(**options).fit(X0, v).complete() for v in (y, np.clip(y, -4, 4)))
        np.testing.assert_array_equal(far, near)


def test_rows_of_few_noisy_entries_are_shrunk(seed):
    """By what is best where rows are normal: their error is far below that of least squares."""
    rng = np.random.default_rng(seed)
    rows, features = rng.standard_normal((400, 3)), rng.standard_normal((400, 4, 3))
    values = np.einsum("nmr,nr->nm", features, rows) + 2 * rng.standard_normal((400, 4))
    grams = features.transpose(0, 2, 1) @ features
    sums = np.einsum("nmr,nm->nr", features, values)
    found = posterior_rows(sums, grams, np.zeros((400, 3, 3)), 4.0, 1.0)
    plain = np.linalg.solve(grams, sums[..., None])[..., 0]
    assert np.square(found - rows).sum() < 0.5 * np.square(plain - rows).sum()


@pytest.mark.parametrize("perturbation", ["input", "sufficient_statistics", "gradient", "output"])
def test_modes_may_have_ranks_of_their_own(perturbation):
    """Gradients were paid for, and then refused factors of different widths."""
    model = build(
        PrivateTuckerCompletion, rank=(3, 2, 1), perturbation=perturbation, epsilon=20.0
    ).fit(X0, Y0)
    assert np.isfinite(model.predict(X0)).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PrivateCPCompletion(2, bounds=(0, 1), epsilon=0.1), "Components are not sought"),
        (PrivateCPCompletion(2, bounds=(0, 1), shape=(60, 60), unit_mode=0, delta=0),
         "sought: no release shows those of units at delta=0, epsilon=1. .* need a delta above 0"),
        (PrivateTuckerCompletion(51, bounds=(0, 1), shape=(60, 60), perturbation="gradient"),
         "will take minutes"),
    ],
)  # fmt: skip
def test_who_makes_errors_of_warnings_pays_nothing_where_public_numbers_cause_them(model, message):
    accountant = BudgetAccountant(1.0, 1e-6)
    before = accountant.remaining()
    model.set_params(accountant=accountant)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=message):
            model.fit([[0, 0], [1, 1]], [0.0, 1.0])
        assert accountant.remaining() == before
        with pytest.raises(BudgetError):  # no result is promised where none is to come
            model.set_params(epsilon=2.0).fit([[0, 0], [1, 1]], [0.0, 1.0])
    assert not hasattr(model, "mean_")


def test_no_error_tells_how_many_entries_a_partition_has():
    da = pytest.importorskip("dask.array", reason="the extra [dask] is not installed")
    X = da.from_array(np.zeros((1711, 2)), chunks=(1711, 2))
    model = PrivateCPCompletion(0, bounds=(0, 1), shape=(30, 5), unit_mode=0)
    for y in (np.ones((1711, 2)), np.ones(1711).astype(str)):
        with pytest.raises(ValueError, match="y must") as error:
            model.fit(X, da.from_array(y, chunks=1711))
        assert re.search(r"171[01]|3422", str(error.value)) is None
