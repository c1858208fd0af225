"""Private scorers: each call is one clipped, noisy, charged release, of rows or of persons."""

import math
import pickle
import warnings
from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import small_models
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from small_completions import Y0
from small_models import COUNTS, DATA
from small_searches import INF, cells, counts
from toy_regressor import NoisyMean, answering, constant, targets

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    DoubtfulParameterWarning,
    NotEnoughDataWarning,
    PrivateGaussianMixture,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTuckerCompletion,
    UnprotectedScoreWarning,
    make_private_scorer,
)
from sktensor_dp.data.units import Units
from sktensor_dp.estimator import scoring
from sktensor_dp.model_selection.scores import RowScores, row_by_row
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.held_out import HeldOutChunk, HeldOutScores

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:.*topics asked for"),
    pytest.mark.filterwarnings("ignore:.*word frequencies"),
]
SQUARED, ABSOLUTE = "neg_mean_squared_error", "neg_mean_absolute_error"
PER_TOKEN = "log_likelihood_per_token"


# Persons of several rows.
OWNERS = np.repeat(np.arange(60), np.arange(60) % 4 + 1)
X = counts(len(OWNERS))
TARGETS, WHOSE = np.array([0.0, 1.0, 1.0, 1.0, 3.0]), ["b", "a", "a", "a", "b"]


def scorer_of(metric, **options):
    return make_private_scorer(metric, **{"epsilon": INF, "bounds": (-1, 0), **options})


def test_a_score_is_a_mean_of_clipped_scores():
    scores = np.array([-5.0, 0.25, 0.5, math.nan, 7.0, INF])
    found = scorer_of("log_likelihood", bounds=(0, 1))(answering(np.ravel), scores[:, None])
    assert found == pytest.approx((0 + 0.25 + 0.5 + 0 + 1 + 1) / 6)


def test_refuses_before_reading_when_the_budget_is_spent():
    class Unread:
        shape = (10, 7)

        def __getitem__(self, rows):
            raise AssertionError("read")

    fitted = PrivateSpectralLDA(1, epsilon=INF).fit(counts())
    scorer = make_private_scorer("log_likelihood", bounds=(-99, 0))
    spent = clone(scorer).set_params(accountant=BudgetAccountant(epsilon=1.0, delta=1e-6))
    assert np.isfinite(spent(fitted, counts()))
    with pytest.raises(BudgetError):
        spent(fitted, Unread())
    with BudgetAccountant(epsilon=0.5, delta=1e-6), pytest.raises(BudgetError):
        scorer(fitted, Unread())


def test_bounds_are_the_scorers_and_not_those_of_a_model():
    """The narrowest bounds would win a search."""
    for metric in (SQUARED, ABSOLUTE, "log_likelihood"):
        with pytest.raises(ValueError, match="bounds must be given"):
            make_private_scorer(metric)
    with pytest.raises(ValueError, match=r"texts are \(-11\.5, 0\).*-2 log\(d\).*n_features=d"):
        PrivateSearchCV(PrivateSpectralLDA(1), {"random_state": [0]}).forecast(9)
    # By default as wide as those of texts, or of so many words.
    of_words = make_private_scorer("log_likelihood_per_token")
    widths = [of_words.forecast(9).width, of_words.forecast(9, n_features=100).width]
    assert widths == pytest.approx([5 * math.log(10), 4 * math.log(10)])
    for metric in (SQUARED, ABSOLUTE):
        with pytest.raises(ValueError, match=rf"no {metric} is above 0: write \(-9, 0\)"):
            make_private_scorer(metric, bounds=(-1, 9))
    X, y = cells()
    fitted = NoisyMean(bounds=(0.0, 3.0), epsilon=INF).fit(X, y)
    scorer = scorer_of(SQUARED, epsilon=1.0, accountant=(budget := BudgetAccountant()))
    scorer(fitted, X, y)
    (entry,) = budget.entries
    assert (entry.release, entry.cost) == (
        "held_out_scores", PrivacyCost(mu=gaussian_mu(1.0, 1e-6)),
    )  # fmt: skip


# What is refused before the charge


FITTED, TOY = PrivateSpectralLDA(1, epsilon=INF).fit(counts()), NoisyMean(epsilon=INF)
TOY.fit(*targets(100))
AT, Y = targets(100)
WIDE, LEARNING = np.zeros((100, 2)), "which may learn from the data"
USERS = PrivateTuckerCompletion(bounds=(0, 3), unit_mode=0)
REFUSED = [
    (SQUARED, TOY, (AT, None), "needs y, which is None"),
    (SQUARED, TOY, (AT, Y[:50]), "inconsistent numbers of samples"),
    (SQUARED, TOY, (WIDE, Y), "has 2 features"),
    (SQUARED, TOY, (AT, WIDE), "y must hold one number for each row"),
    ("log_likelihood", TOY, (AT,), "needs an estimator with score_samples"),
    ("log_likelihood", FITTED, (counts()[:, 1:],), "has 6 features"),
    ("log_likelihood", FITTED, (counts()[:0],), "at least one row"),
    ("log_likelihood", FITTED, (da.from_array(counts()),), "X must lie in memory"),
    ("log_likelihood", PrivateSpectralLDA(1), (AT,), "not fitted"),
    # It is not known what these protect.
    (SQUARED, DummyRegressor(), (AT, Y), LEARNING),
    (SQUARED, TransformedTargetRegressor(regressor=NoisyMean()), (AT, Y), LEARNING),
    (SQUARED, make_pipeline(NoisyMean(), DummyRegressor()), (AT, Y), LEARNING),
    (SQUARED, USERS, cells(), "not fitted"),
    (ABSOLUTE, constant(), (np.zeros((5, 1)), TARGETS[1:], WHOSE), "with equally many rows"),
    (ABSOLUTE, constant(), (np.zeros((5, 1)), None, WHOSE), "needs y"),
]


@pytest.mark.parametrize(("metric", "model", "data", "message"), REFUSED, ids=lambda _: "")
def test_refuses_what_cannot_be_scored_before_charging(metric, model, data, message):
    X, y, groups = (*data, None, None)[:3]
    implied = None if message.startswith("bounds") else (-1, 0)
    scorer = scorer_of(metric, epsilon=1.0, accountant=BudgetAccountant(100.0), bounds=implied)
    with pytest.raises((ValueError, TypeError), match=message) as error:
        scorer(model, X, y, groups=groups)
    assert groups is None or "5" not in str(error.value)  # how many rows of groups is private
    assert scorer.accountant.entries == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("metric", value) for value in ("r2", "accuracy", len, None)), ("epsilon", 0),
        ("delta", 1), *(("bounds", value) for value in ((1, 0), "ab", (0, 1e-320), (0, 1e308))),
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"{name}.* must be"):
        make_private_scorer(**{"metric": "log_likelihood", name: value})


ODD = ["x", "1", b"1", None, 1j, 2**70, 10**400, float("nan"), "nan", [1, 2], [[1]], {}, object(),
       np.datetime64("2020-01-01"), 1e308, "9" * 5000, np.array(3), np.ones(2)]  # fmt: skip


@pytest.mark.parametrize("metric", [SQUARED, ABSOLUTE])
@pytest.mark.parametrize("place", [0, 999])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_no_label_changes_the_scores_of_other_rows(metric, place, odd):
    """By a thousandth of their range at most; what is no number is refused unspent."""
    scorer = scorer_of(metric, accountant=BudgetAccountant())
    found, said, y = 0.0, "", [1] * 1000
    y[place] = odd
    try:
        found = scorer(constant(1), np.zeros((1000, 1)), y)
    except (TypeError, ValueError) as error:
        said = str(error)
    assert abs(found) <= 1 / 1000 * (1 + 1e-9)
    assert not said or (said.startswith("y ") and scorer.accountant.entries == ())


@pytest.mark.parametrize(
    "given", [Y, Y[:, None], Y.tolist(), Y[:, None].tolist(), pd.Series(Y)], ids=lambda _: ""
)
def test_columns_of_targets_are_one_number_each(given):
    score = scorer_of(SQUARED, bounds=(-9, 0))(constant(5.0), AT, given)
    assert score == pytest.approx(-np.mean((Y - 5.0) ** 2))


# Row by row: one that cannot be scored counts as the lower bound, whatever the others do


def picky(X):
    if any("no" in row if isinstance(row, str) else row[0] < 0 for row in X):
        raise ValueError("odd")
    return np.zeros(len(X))


@pytest.mark.filterwarnings("ignore:The score lies at an end")
@pytest.mark.parametrize("metric", ["log_likelihood", SQUARED, "texts"])
@pytest.mark.parametrize("n_bad", [1, 99, 100])
def test_rows_that_the_model_refuses(metric, n_bad):
    if metric == "texts":
        X = ["no"] * n_bad + ["yes"] * (100 - n_bad)
        found = scorer_of("log_likelihood")(answering(picky, texts=True), X)
    else:
        X = np.where(np.arange(100) < n_bad, -1.0, 0.0)[:, None]
        found = scorer_of(metric)(answering(picky), X, np.zeros(100))
    assert found == pytest.approx(-n_bad / 100)


@pytest.mark.parametrize("odd", [["x", 1.0], [1j, 0], "x", None, [1.0], [[1], 2]], ids=str)
def test_one_row_of_objects_makes_no_objects_of_others(odd):
    """Of a list with one text in it numpy would make texts of all: it is refused."""
    total = answering(lambda X: np.asarray(X).sum(axis=1))
    rows, y = [[i, 1.0] for i in range(200)], [i + 1.0 for i in range(200)]
    rows[7] = odd
    with pytest.raises((TypeError, ValueError), match=r"^X "):
        scorer_of(SQUARED)(total, rows, y)
    if isinstance(odd, list) and len(odd) == 2 and np.ndim(odd[0]) == 0:
        array = np.empty((200, 2), dtype=object)
        array[:] = rows
        for table in (array, pd.DataFrame(array)):
            assert scorer_of(SQUARED)(total, table, y) == pytest.approx(-1 / 200)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix])
def test_a_refused_row_moves_no_other_answer(container, seed):
    """Not by one bit, though products of another number of rows round differently."""
    X = counts(57, seed) + 1.0
    model = PrivateSpectralLDA(2, epsilon=INF, random_state=0).fit(X)
    place = np.random.default_rng(seed).integers(57)
    bad = X.copy()
    bad[place, 0] = np.nan
    whole, found = (row_by_row(model.score_samples, container(rows)) for rows in (X, bad))
    assert np.isnan(found[place])
    others = np.arange(57) != place
    assert (whole[others] == found[others]).all()


@pytest.mark.parametrize(
    "question", [lambda X: np.zeros(len(X) + 1), lambda X: np.zeros((len(X), 2)), lambda X: "no"]
)
def test_what_is_not_one_number_for_each_row_is_none(question):
    assert np.isnan(row_by_row(question, np.zeros((100, 1)))).all()


@pytest.mark.parametrize("found", [np.array([0.1, 0.2]), ["secret"]])
def test_scores_that_are_wrong_show_nothing(found):
    query = HeldOutScores(lambda X, y: X, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"Scoring must return numbers|of as many") as caught:
        query.total(HeldOutChunk(found, None, Units.single(3)))
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.filterwarnings("error")
def test_no_warning_of_a_score_is_shown():
    def loud(X, y):
        warnings.warn(f"{X[0]} is odd", UserWarning, stacklevel=1)
        return np.log(X) * np.square(1e200 * X)

    chunk = HeldOutChunk(np.array([-1.0, 0.0]), None, Units.single(2))
    assert HeldOutScores(loud, 0.0, 1.0).total(chunk).tolist() == [-1.0]


def fitted():
    for name, model in small_models.fitted():
        X = DATA[type(model)]
        if hasattr(model, "score_samples") and "tensor" not in name:
            yield model, X, None, ["log_likelihood", *([PER_TOKEN] if X is COUNTS else [])]
        elif hasattr(model, "complete") and "slice" not in name:
            yield model, X, Y0, [SQUARED, ABSOLUTE]


def test_each_score_is_of_its_own_row_and_their_mean_is_what_score_says(seed):
    rng = np.random.default_rng(seed)
    for model, X, y, names in fitted():
        wholes = {}
        for name in names:
            score = RowScores(name, model)
            whole = wholes[name] = score(X, y)
            rows = rng.permutation(len(X))[:23]
            part = score(X[rows], None if y is None else y[rows])
            # Sums in another order round differently; nothing else may change.
            np.testing.assert_allclose(part, whole[rows], rtol=1e-9, atol=1e-9)
            assert np.ptp(whole) > 0
        if y is not None:
            squared = -np.mean((model.predict(X) - y) ** 2)
            assert wholes[SQUARED].mean() == pytest.approx(squared)
        elif isinstance(model, PrivateSpectralLDA):
            assert model.score_samples(X).sum() == pytest.approx(model.score(X))
            log = -np.average(wholes[PER_TOKEN], weights=X.sum(axis=1))
            assert math.exp(log) == pytest.approx(model.perplexity(X))
        else:
            assert model.score_samples(X).mean() == pytest.approx(model.score(X))


def test_the_first_score_that_no_noise_protects_warns():
    ways, seen = ("score", "perplexity", "completion_perplexity", "bic", "aic"), set()
    for name, model in small_models.fitted():
        if "tensor" in name:
            continue
        given = (DATA[type(model)], Y0) if hasattr(model, "complete") else (DATA[type(model)],)
        asked = {way: partial(getattr(model, way), *given) for way in ways if hasattr(model, way)}
        if hasattr(model, "predict"):  # by a scorer of scikit-learn, which has no noise either
            y = np.zeros(len(model.predict(given[0])))
            asked["scorer"] = partial(get_scorer("neg_mean_squared_error"), model, given[0], y)
        for way, ask in asked.items():
            scoring.warn_once.cache_clear()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UnprotectedScoreWarning)
                ask()
                ask()
            told = [one for one in caught if issubclass(one.category, UnprotectedScoreWarning)]
            assert [one.filename for one in told] == [__file__]
            by_units = getattr(model, "unit_mode", None) is not None
            assert ("newcomer" in str(told[0].message)) == by_units
            seen.add(way)
    assert seen == {*ways, "scorer"}
    scoring.warn_once.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnprotectedScoreWarning)
        search = PrivateSearchCV(PrivateSpectralLDA(1), {}, n_trials=1, epsilon=9.0).fit(COUNTS)
        for _ in range(2):  # an error is not the once
            with pytest.raises(UnprotectedScoreWarning):
                search.score(COUNTS)
        make_private_scorer("log_likelihood_per_token", epsilon=9.0)(search, COUNTS)


# Persons


@pytest.mark.parametrize("kind", [np.asarray, sp.coo_matrix])
def test_a_score_is_the_mean_over_groups_of_means_over_rows(kind):
    rows, absolute = kind(np.zeros((5, 1))), scorer_of(ABSOLUTE, bounds=(-2.0, 0.0))
    # a: -1, -1, -1; b: 0 and -2, to which -3 is clipped, or -1.
    for y, groups, mean in (
        (TARGETS, WHOSE, -1.0), (TARGETS, None, -1.0), ([0.0, 1, 1, 1, 1], WHOSE, (-1 - 0.5) / 2),
    ):  # fmt: skip
        assert absolute(constant(), rows, y, groups=groups) == pytest.approx(mean, abs=1e-15)


def test_noise_is_in_proportion_to_the_number_of_groups():
    rows, model, budget = np.zeros((4000, 1)), constant(0.0), BudgetAccountant()
    absolute = scorer_of(ABSOLUTE, epsilon=1.0, accountant=budget)
    absolute(model, rows, rows[:, 0], groups=np.arange(4000) // 40)
    absolute(model, rows[:100], rows[:100, 0], groups=range(100))
    one, other = budget.entries
    assert one.sigma == other.sigma
    assert one.unit == "person"


@pytest.mark.parametrize("bounds", [(-15.0, 10.0), (99.0, 120.0)], ids=["above", "beyond"])
def test_bounds_beyond_what_a_model_expects_are_refused_before_the_charge(bounds):
    """All rows would be clipped, and models of scores far apart would tie."""
    rows = np.random.default_rng(0).normal(0, [10.0] * 8, (4000, 8))
    model = PrivateGaussianMixture(1, data_norm=50.0, epsilon=9.0).fit(rows)
    expected = model.score_samples(model.sample(4000)[0]).mean()
    assert model._expected_score() == pytest.approx(expected, abs=0.2)
    scorer = scorer_of("log_likelihood", epsilon=9.0, bounds=bounds, accountant=BudgetAccountant())
    for fitted in (model, make_pipeline("passthrough", model)):
        with pytest.raises(ValueError, match=r"of the fitted model .*Nothing was charged"):
            scorer(fitted, rows)
    assert scorer.accountant.entries == ()
    scorer.set_params(epsilon=INF, accountant=None)
    with warnings.catch_warnings(record=True) as caught:  # a search may try worse models
        warnings.simplefilter("always")
        found = cross_val_score(model, rows, cv=KFold(2), scoring=scorer, error_score="raise")
    assert np.abs(found[0] - np.array(bounds)).min() < 0.1
    assert any("end of its bounds" in str(one.message) for one in caught)


@pytest.mark.parametrize(
    ("bounds", "answer", "warned"),
    [((-1, 1), -9.0, True), ((-1, 1), 9.0, True), ((-1, 0), 0.0, False), ((-1, 1), 0.5, False)],
)
def test_a_score_at_an_end_of_its_bounds_warns(bounds, answer, warned):
    """Of errors 0 is no end at which any is clipped."""
    scorer, rows = scorer_of("log_likelihood", bounds=bounds), np.zeros((40, 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DoubtfulParameterWarning)
        scorer(answering(lambda X: np.full(len(X), answer)), rows)
    assert [one.category is DoubtfulParameterWarning for one in caught] == [True] * warned
    assert {one.filename for one in caught} <= {__file__}


@pytest.mark.parametrize(("n", "is_noise"), [(5, True), (400, False)])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_score_that_is_noise_warns_before_its_charge(n, is_noise, delta):
    budget = BudgetAccountant()
    scorer = scorer_of(ABSOLUTE, epsilon=0.5, delta=delta, accountant=budget)
    assert scorer.forecast(n).is_noise is is_noise
    model, rows = constant(0.0), np.zeros((2 * n, 1))
    warnings.simplefilter("error")  # each test has filters of its own
    if is_noise:
        with pytest.raises(NotEnoughDataWarning, match=f"{n} units .* Noise decides"):
            scorer(model, rows, rows[:, 0], groups=np.arange(2 * n) // 2)
        assert budget.entries == ()
    else:
        scorer(model, rows, rows[:, 0], groups=np.arange(2 * n) // 2)
        assert budget.entries[0].sigma == pytest.approx(scorer.forecast(n).score_sigma)


def test_a_model_of_groups_is_scored_with_groups_alone():
    budget = BudgetAccountant(100.0, 1e-6)
    model = PrivateSpectralLDA(1, epsilon=9.0, accountant=budget).fit(X, groups=OWNERS)
    scorer = make_private_scorer(PER_TOKEN, epsilon=9.0, accountant=budget)
    for wrong, match in ((model, "groups must be given"), (FITTED, "'document'")):
        spent = len(budget.entries)
        with pytest.raises(ValueError, match=match):
            scorer(wrong, X)
        assert len(budget.entries) == spent
    assert math.isfinite(scorer(model, X, groups=OWNERS))
    assert {entry.unit for entry in budget.entries} == {"person"}


def test_scores_the_best_model_of_a_search_and_pickles_without_an_accountant():
    X, y = targets(100)
    grid = GridSearchCV(NoisyMean(), {"shift": [0.0]}, cv=2, scoring=lambda *_: 0.0).fit(X, y)
    private = PrivateSearchCV(NoisyMean(), {"shift": [0.0]}, n_trials=1.0).fit(X, y)
    scorer = pickle.loads(pickle.dumps(scorer_of(SQUARED)))
    assert "epsilon=inf" in repr(scorer)
    for search in (grid, private):
        assert scorer(search, X, y) == scorer(search.best_estimator_, X, y)
