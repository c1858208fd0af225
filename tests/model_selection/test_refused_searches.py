"""What a search refuses costs nothing: wrong options, steps and data.

That it refuses what its estimator does, by data or candidates, is in the contract of refusals.
"""

from functools import partial

import dask.array as da
import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OrdinalEncoder, StandardScaler
from small_searches import INF, cells, completions, counts, raters, topics
from small_texts import pipeline
from small_texts import search as of_texts
from toy_regressor import NoisyMean

from sktensor_dp import (
    BudgetAccountant,
    NotEnoughDataError,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
    make_private_scorer,
    scale_by_ranges,
)
from sktensor_dp.checks.display import plain
from sktensor_dp.model_selection import pipeline_steps

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

COUNTS = np.random.default_rng(0).poisson(1.0, (200, 6)).astype(float)
CELLS, RATINGS = np.argwhere(np.ones((20, 10))), np.linspace(0, 1, 200)
ITEMS = [f"film {number}" for number in range(10)]
NAMED = np.array([(row, ITEMS[column]) for row, column in CELLS.tolist()], dtype=object)
TEXTS = ["some words here", "other words there", "more of the same words"] * 60
SCORER = make_private_scorer("log_likelihood", bounds=(-9, 0))


class MyNormalizer(Normalizer):
    """May do anything."""


lda = partial(PrivateSpectralLDA, 3, n_refinements=1, random_state=0)
samples = partial(PrivateTensorPowerMethod, 2, data_norm=5.0, random_state=0)
entries = partial(PrivateCPCompletion, 1, bounds=(0, 1), random_state=0)
hashing = partial(HashingVectorizer, n_features=8, norm=None, alternate_sign=False)
same = Normalizer


def with_one(value, of):
    changed = of.astype(float)
    changed.flat[7] = value
    return changed


def followed():
    """An estimator with what scikit-learn's set_callbacks leaves, and clone keeps."""
    estimator = make_pipeline(same(), samples())
    estimator._skl_callbacks = [object()]
    return estimator


# Of topics.
OPTIONS = [
    *(({"param_distributions": {name: [1]}}, "cannot be searched over")
      for name in ("epsilon", "delta", "accountant", "verbose", "neighbours")),
    ({"param_distributions": {"n_component": [1]}}, "n_component; did you mean n_components"),
    ({"param_distributions": {"n_components": []}}, "non-empty sequence"),
    ({"param_distributions": []}, "at least one dict"),
    ({"param_distributions": {"n_components": [1, 9]}}, "at most 7, the number of columns"),
    ({"param_distributions": {"n_components": 3}}, "not iterable or a distribution"),
    ({"scoring": "perplexity"}, "scoring must be one of .* got 'perplexity'"),
    ({"scoring": len}, "scoring must be one of"),
    ({"scoring": SCORER}, "scoring must be one of"),
    ({"scoring": "neg_mean_squared_error"}, "needs an estimator with predict"),
    ({"n_trials": 0.5}, "n_trials"),
    ({"test_size": 1.0}, "test_size"),
    ({"test_size": 0.9999}, "must leave 1 or more rows"),
    *(({"score_bounds": bounds}, "score_bounds must be two finite numbers")
      for bounds in ((0, INF), (-1.7e308, 1.0), (0.0, 5e-324), (1e200, 2e200))),
    ({"score_bounds": (0, 100)}, r"high <= 0, as no log_like.*: write \(-100, 0\) for \(0, 100\)"),
]  # fmt: skip
# Of a pipeline of a vocabulary and topics.
OPTIONS_OF_TEXTS = [
    ({"delta": 0}, "delta must be > 0"),
    ({"step_fractions": {"counts": 1.0}}, "step_fractions must be None, or map each"),
    ({"step_fractions": {"counts": 0.0, "topics": 1.0}}, "to a number > 0"),
    *(({"candidates": candidates}, message) for candidates, message in (
        ({"counts__epsilon": [1.0]}, "cannot be searched over"),
        ({"topics__neighbours": ["add_remove"]}, "cannot be searched over"),
        ({"memory": [None]}, "no parameter of .*: memory"),
        ({"counts": [PrivateCountVectorizer()]}, "no parameter of .*: counts"),
        ({"nothing__epsilon": [1.0]}, "no parameter of .*__epsilon"),
        ({"counts__max_words_per_document": [0]}, "max_words_per_document"),
        ({"counts__dtype": ["f5"]}, "'dtype' parameter"),
        ({"counts__vocabulary": [["a", "a"]]}, "'vocabulary' parameter"),
    )),
    ({"model": pipeline(neighbours="add_remove")}, "neighbours of all private steps"),
    ({"model": pipeline(neighbours="add_remove").set_params(topics__neighbours="add_remove")},
     "by itself where .* a part may have no rows"),
    ({"model": pipeline(accountant=BudgetAccountant())}, "must have accountant=None"),
    ({"model": pipeline(tokenizer=int)}, "Splitting documents into words failed"),
    ({"model": pipeline(vocabulary=["a", "a"])}, "'vocabulary' parameter"),
    ({"model": pipeline(min_df=0.5, max_df=0.2)}, "min_df=0.5 asks for more documents"),
]  # fmt: skip
LEARNING = [
    StandardScaler(), OrdinalEncoder(), CountVectorizer(), GaussianProcessRegressor(),
    FunctionTransformer(), MyNormalizer(), HashingVectorizer(tokenizer=str.split),
    HashingVectorizer(input="file"),
    HashingVectorizer(strip_accents=str.lower),
    CountVectorizer(vocabulary=["words"], analyzer=str.split), make_pipeline(Normalizer()),
]  # fmt: skip
TOGETHER = [
    (make_pipeline(same(), samples()),
     [{"privatetensorpowermethod__max_iter": [steps]} for steps in (1, 0)], "'max_iter' parameter"),
    (entries(), {"bounds": [(0, 1), (0.4, 0.6)]}, "give score_bounds"),
    (entries(shape=(20, 9), row_names=(None, ITEMS)), {}, "the number of different names"),
    *((entries(), {name: [None]}, f"'{name}' cannot be searched over: .* what the data are")
      for name in ("shape", "row_names")),
    *((PrivateTuckerCompletion(rank, bounds=(0, 1)), candidates, "one for each of the 2 modes")
      for rank, candidates in (((), {}), (1, {"rank": [1, ()]}))),
    *((PrivateSpectralLDA(1, **given), candidates, "one number for each of the 2 columns")
      for given, candidates in (
          ({"word_frequencies": [1.0]}, {}), ({}, {"word_frequencies": [None, [1.0]]}))),
    (samples(perturbation=None), {"whiten": stats.bernoulli(0.5)}, "'perturbation' parameter"),
    (PrivateTuckerCompletion(bounds=(0, 1), shape=(20, 10)), {"rank": [1, (21, 1)]},
     "must not exceed the shape"),
    (PrivateGaussianMixture(), {"n_components": [1, 2]}, "'data_norm' parameter .* must be given"),
]  # fmt: skip
OTHERS = [
    (Normalizer(), {}, "estimator must be private"),
    (StandardScaler(), {}, "which may learn"),
    (topics(), {"n_trials": [3]}, "which may learn"),
    (PrivateTuckerCompletion(bounds=(0, 3), unit_mode=0), {}, "shape .* must be given"),
    (raters(5).estimator, {}, "count all units"),
    (raters(20).estimator, {"unit_mode": [0, None]}, "cannot be searched over"),
    (make_pipeline(same(), raters(20).estimator), {}, "must be by itself"),
    (PrivateSpectralLDA(accountant=BudgetAccountant()), {}, "accountant=None"),
    (followed(), {}, "callbacks"),
]
DATA = [
    (lda(), (da.from_array(COUNTS, chunks=(100, 6)),), "X must lie in memory"),
    *(
        (entries(row_names=names), (CELLS[[*range(199), 0]], RATINGS), "different coordinates")
        for names in (None, (range(20), None))
    ),
    *((entries(row_names=(None, ITEMS), **units), data, message)
      for units in ({}, {"unit_mode": 0, "shape": (20, 10)}) for data, message in (
        ((NAMED, with_one(INF, RATINGS)), "y contains NaN or infinity"),
        ((NAMED[:, [0, 1, 1]], RATINGS), "a column for each of the 2 elements"),
        ((CELLS, RATINGS), "a column of numbers where row_names are text"),
    )),
    (entries(row_names=(None, ITEMS)), (NAMED[:, [1, 1]], RATINGS), "coordinates in column 0"),
    *((entries(shape=(20, 9), unit_mode=mode), (CELLS, RATINGS), "beyond shape")
      for mode in (None, 0)),
    (entries(shape=(20, 10, 2)), (CELLS, RATINGS), "for each of the 2 columns of X"),
    (NoisyMean(), (COUNTS,), "needs y"),
    (pipeline(), ([*TEXTS, None],), "item 180 is of type NoneType"),
    *((make_pipeline(step, samples()), (with_one(np.nan, COUNTS),), "contains NaN")
      for step in (Normalizer(), "passthrough")),
    *((make_pipeline(hashing(), lda()), ([*TEXTS, odd],), "X must hold texts")
      for odd in (3, None, b"bytes", ["word"], float("nan"))),
]  # fmt: skip
# What decides what is scored: the narrowest bounds, or the coarsest table, would win.
SCORED_BY = [
    (pipeline(), "counts__ngram_range", [(1, 1), (1, 2)]),
    (pipeline(), "counts__stop_words", [None, "english"]),
    (make_pipeline(hashing(), PrivateSpectralLDA()), "hashingvectorizer__n_features", [8, 16]),
    (make_pipeline(scale_by_ranges({0: (0, 9)}), samples()), "rangescaler__ranges", [{0: (0, 99)}]),
]
bounded = partial(PrivateSearchCV, score_bounds=(-9.0, 0.0))
REFUSED = [
    *((topics(**options), (counts(),), message) for options, message in OPTIONS),
    (completions(scoring="log_likelihood"), cells(), "needs an estimator with score_samples"),
    *((of_texts(**options), (TEXTS,), message) for options, message in OPTIONS_OF_TEXTS),
    *((PrivateSearchCV(make_pipeline(step, PrivateSpectralLDA()), {}), (TEXTS,), "which may learn")
      for step in LEARNING),
    *((PrivateSearchCV(model, candidates), (CELLS, RATINGS), message)
      for model, candidates, message in (*TOGETHER, *OTHERS)),
    (bounded(PrivateGaussianMixture(data_norm=9.0), {"n_components": [1, 10**6]}), (CELLS,),
     "GB of memory"),
    (bounded(samples(), {"data_norm": [3.0]}), (with_one(np.nan, COUNTS),), "NaN"),
    (bounded(samples(), {}, forecast_options={"n": 9}), (COUNTS,), "forecast_options must be None"),
    *((bounded(model, {}, scoring=other), (COUNTS,), f"'{other}' is no score of .* say '{own}'")
      for model, other, own in (
        (samples(), "log_likelihood", "third_moment_fit"),
        (PrivateGaussianMixture(data_norm=9.0), "third_moment_fit", "log_likelihood"),
    )),
    *((bounded(model, {name: values}), (TEXTS,), f"'{name}' cannot be searched.* what '(log|third)")
      for model, name, values in SCORED_BY),
    # After the charge it would be too late to ask for them.
    *((PrivateSearchCV(model, {}), data, "score_bounds must be given") for model, data in (
        (PrivateGaussianMixture(data_norm=9.0), (COUNTS,)), (samples(), (COUNTS,)),
        (entries(bounds="auto"), (CELLS, RATINGS)),
    )),
    *((bounded(model, {}), data, message) for model, data, message in DATA),
    # Of two groups one is held out, and one alone is all of the training data.
    *((topics(**options), (COUNTS, None, np.arange(200) // size), message)
      for options, size, message in (
          ({}, 100, "must leave 2 or more groups to train on"),
      )),
    (completions(), (*cells(), np.arange(225) // 5), "takes no groups: .*unit_mode=0"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")  # of rows of zeros
@pytest.mark.parametrize(("search", "data", "message"), REFUSED, ids=lambda _: "")
def test_what_is_wrong_is_refused_unspent(search, data, message):
    """One missing value is no reason to pay for a whole search."""
    budget = BudgetAccountant(epsilon=100.0, delta=0.1)
    X, y, groups = (*data, None, None)[:3]
    with pytest.raises((ValueError, TypeError), match=message):
        search.set_params(accountant=budget).fit(X, y, groups=groups)
    assert budget.entries == ()
    assert not hasattr(search.estimator, "n_features_in_")


def test_a_forecast_knows_how_many_words_a_public_vectorizer_gives():
    words = ["axe", "bow", "cup", "dye"]
    for step, n_words in (
        (CountVectorizer(vocabulary=words), 4),
        (HashingVectorizer(n_features=8), 8),
    ):
        topic = PrivateSpectralLDA(1)
        search = PrivateSearchCV(
            make_pipeline(step, topic), {"privatespectrallda__random_state": [0]}
        )
        by_itself = PrivateSearchCV(topic, {"random_state": [0]}).forecast(9000, n_features=n_words)
        assert search.forecast(9000).width == by_itself.width


@pytest.mark.parametrize("epsilon", [0.1, INF])
def test_a_forecast_has_the_noise_of_scores_and_warns_before_the_charge(epsilon):
    budget = BudgetAccountant()
    search = topics(epsilon=epsilon, accountant=budget, n_trials=1.0)
    expected = search.forecast(len(COUNTS), n_features=COUNTS.shape[1])
    if expected.is_noise:
        with pytest.raises(NotEnoughDataError, match=r"(?s)Noise decides.*anyway=True"):
            search.set_params(anyway=False).fit(COUNTS)
        assert budget.entries == ()
    assert expected.is_noise == (epsilon < INF)
    search.set_params(anyway=True).fit(COUNTS)
    row, *_ = (one for one in search.privacy_report_.rows if one.name == "held_out_scores")
    assert row.sigma == pytest.approx(expected.score_sigma, rel=0.02)


def test_candidates_that_are_right_together_are_tried():
    """As given they would be refused: samples have no norm yet."""
    model = samples(data_norm=None)
    lists = {"n_components": [2, 3], "data_norm": [1.0, 2.0]}
    pipeline_steps.tried_steps([lists, {"data_norm": ["auto"]}], model)
    with pytest.raises(ValueError, match="'data_norm' parameter"):
        pipeline_steps.tried_steps([lists, {"whiten": [False]}], model)
    # Bounds may be tried where the range of scores is not theirs.
    bounds = {"bounds": [(0, 1), (0.4, 0.6)]}
    PrivateSearchCV(entries(), bounds, score_bounds=(-1, 0))._request(None, {})
    # Too many to try, and those that are drawn, are not.
    drawn = {"n_components": stats.randint(1, 5)}
    many = {"n_components": list(range(1, 200)), "max_iter": [1, 2]}
    pipeline_steps.tried_steps([drawn, many], model)


TEXTS = [f"a{i % 7} b{i % 5} c{i % 3}" for i in range(400)]


@pytest.mark.parametrize(("model", "name", "X", "n_features"), [
    (PrivateSpectralLDA(), "n_components", sparse.csr_matrix((2000, 1000), dtype=int), 1000),
    (Pipeline([("counts", PrivateCountVectorizer()), ("topics", PrivateSpectralLDA())]),
     "topics__n_components", TEXTS, None),
])  # fmt: skip
def test_trials_that_show_nothing_are_told_before_the_charge(model, name, X, n_features):
    budget = BudgetAccountant()
    search = PrivateSearchCV(model, {name: [20, 30]}, score_bounds=(-20, 0), accountant=budget)
    expected = search.forecast(np.shape(X)[0], n_features=n_features)
    assert not expected.is_noise
    assert {verdict for _, verdict in expected.verdicts} == {"too few"}
    assert "assumed to have about 100 tokens each (document_length=" in str(expected)
    assert n_features is None or "with groups= documents are persons" in str(expected)
    with pytest.raises(
        NotEnoughDataError, match=f"too few +{name}=20\n +{name}=30\n|but there are 320"
    ):
        search.fit(X)
    assert budget.entries == ()


@pytest.mark.parametrize(("model", "asked", "assumed"), [
    (PrivateGaussianMixture(data_norm=9.0), (4000, 3), "Assumed: groups of one size, well apart"),
    (samples(data_norm=9.0), (4000, 3), "Components are assumed to be equally likely, orthogonal"),
    (PrivateSpectralLDA(), (4000, 300), "Documents are assumed to have about 100 tokens each"),
    (entries(shape=(80, 50)), (4000,), "Values are assumed to have a deviation of 0.25,"),
])  # fmt: skip
def test_searches_say_what_forecasts_of_fits_assume(model, asked, assumed):
    assert assumed in str(model.forecast(*asked))
    search = bounded(model, {})
    forecast = search.forecast(*asked)
    assert assumed in str(forecast)
    charge, head, *lines = str(forecast).splitlines()  # a table, a line for each number
    assert charge == f"Search of 4,000 units, charged once: epsilon {forecast.epsilon:g}" + (
        f" at delta {plain(forecast.delta)}." if forecast.delta else "."
    )
    assert head.split()[-1] == "expected"
    assert [line.split()[0] for line in lines[:4]] == ["trials", "fitted", "scored", "told"]
    assert max(map(len, lines[:5])) <= 80


def test_ranks_that_no_trial_can_show_are_told_before_the_charge():
    budget, raters = BudgetAccountant(), entries(unit_mode=0, shape=(20, 10))
    search = PrivateSearchCV(raters, {"rank": [0, 3]}, epsilon=40.0, accountant=budget)
    expected = search.forecast(20)
    assert expected.verdicts == (({"rank": 3}, "likely no components"),)
    assert not expected.is_noise
    with pytest.raises(NotEnoughDataError, match=r"likely no components +rank=3\n"):
        search.fit(CELLS, RATINGS)
    assert budget.entries == ()
    many = entries(unit_mode=0, shape=(20_000, 100))
    ranks = PrivateSearchCV(many, {"rank": [2]}, epsilon=2.0)
    assumed = "Units are assumed to have about {} entries each"
    for length, said in ((None, "components can be found"), (2, "likely no components")):
        forecast = ranks.set_params(forecast_options=length and {"entries_each": length}).forecast(
            20_000
        )
        assert forecast.verdicts == (({"rank": 2}, said),)
        assert assumed.format(length or 20) in str(forecast)
    pure = PrivateSearchCV(many, {"rank": [2]}, epsilon=50.0, delta=0)
    assert "Components of units need a delta above 0." in str(pure.forecast(20_000))
    with pytest.raises(NotEnoughDataError, match=assumed.format(2)):
        ranks.set_params(
            estimator=raters, forecast_options={"entries_each": 2}, accountant=budget
        ).fit(CELLS, RATINGS)
    assert budget.entries == ()
    with pytest.raises(ValueError, match="GB of memory"):
        PrivateSearchCV(many, {"rank": [10**5]}, epsilon=9.0).forecast(20_000)
    with pytest.raises(ValueError, match="n_features must be an int"):
        search.forecast(20, (20, 10))
