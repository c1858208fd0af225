"""Where one unit more or less is hidden, nothing but a noisy count tells how many there are."""

import math

import numpy as np
import pytest
from counted_models import (
    DELTA,
    MODELS,
    TEXTS,
    N,
    documents,
    every_model,
    of_texts,
    topics,
    whole,
    words,
)
from internals import the_true_count
from replaying import Seen, replay, watch

from sktensor_dp import (
    BudgetAccountant,
)
from sktensor_dp.privacy.plan import COUNT_FRACTION
from sktensor_dp.privacy.releases import CATALOGUE

# Fits on so little say so.
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


def test_a_fit_that_divides_by_the_true_number_is_seen(monkeypatch):
    """A deliberate mistake: these replays have power."""
    the_true_count(monkeypatch)
    build, draw = MODELS["topics"]
    X = draw(np.random.default_rng(0), N + 1)
    with pytest.raises(AssertionError):
        replay(build, whole, X[:N], X)


@every_model
def test_the_report_adds_up_and_names_its_neighbours(name, seed):
    build, draw = MODELS[name]
    report = build().fit(draw(np.random.default_rng(seed), N)).privacy_report_
    assert report.neighbours == "add_remove"
    assert report.rows[0].name == "unit_count"
    assert report.rows[0].sensitivity == 1
    assert report.epsilon == pytest.approx(build().epsilon, rel=1e-9)
    assert report.fractions[0] == pytest.approx(COUNT_FRACTION)
    assert "adding or removing one" in report.guarantee
    stated = report.to_json()
    assert '"relation": "add_remove"' in stated
    assert '"number_is": "released"' in stated


def test_the_released_count_is_a_count_with_noise(seed):
    """Within eight deviations, beyond which one in 1e15 lies; and it is not the number itself."""
    rng = np.random.default_rng(seed)
    X = documents(rng, 2000)
    reports = [topics(n_refinements=0)().fit(X).privacy_report_ for _ in range(2)]
    for report in reports:
        assert isinstance(report.n_units, int)
        assert abs(report.n_units - 2000) <= 8 * report.rows[0].sigma + 1
    # Deviations are above 40: five fits that all hit the number are rarer than 1e-9.
    more = [topics(n_refinements=0)().fit(X).privacy_report_.n_units for _ in range(4)]
    assert {*more, *(report.n_units for report in reports)} != {2000}


@every_model
def test_a_fit_on_no_rows_works_as_on_few(name):
    build, draw = MODELS[name]
    for n in (0, 1):
        seen: Seen = watch(build, whole, draw(np.random.default_rng(0), n))
        assert seen.error is None


def test_without_noise_the_number_is_told():
    X = documents(np.random.default_rng(0), N)
    report = topics(epsilon=math.inf)().fit(X).privacy_report_
    assert (report.n_units, report.epsilon) == (N, math.inf)


@pytest.mark.parametrize(
    "options", [{}, {"min_df": 0.01, "max_df": 0.9}, {"max_df": 1000}], ids=str
)
def test_a_vocabulary_hides_one_text_more(options):
    """Told the same count and the same words, all that is fitted is the same."""
    texts = of_texts(np.random.default_rng(0), N + 1)
    for build in (words(**options), words(vocabulary=["cats", "dogs"])):
        for n in (N + 1, 1, 0):
            replay(build, whole, texts[:N], texts[:n])


def test_words_get_the_noise_of_one_document_more_or_less(seed):
    texts = of_texts(np.random.default_rng(seed), 2000)
    fitted = words()().fit(texts)
    count, numbers, row, again = fitted.privacy_report_.rows
    n_units = fitted.privacy_report_.n_units
    assert row.sensitivity == math.sqrt(3)
    # A mean of at most so many units; the rounding of its sum is paid for.
    assert numbers.sensitivity == pytest.approx(math.sqrt(3) / n_units, rel=1e-6)
    assert (again.name, again.sigma) == (numbers.name, numbers.sigma)
    assert fitted.privacy_report_.epsilon == pytest.approx(8.0, rel=1e-9)
    assert (count.delta, numbers.delta, row.delta) == (0.0, 0.0, DELTA / 2)
    forecast = words()().forecast(2000)
    assert forecast.threshold == fitted.threshold_
    assert forecast.sigma == pytest.approx(numbers.sigma * n_units, rel=1e-6)
    replaced = words(neighbours="replace_one")().forecast(2000)
    # A root of two less for the words, a percent of mu squared more for the count.
    ratio = math.sqrt(2 * (1 - COUNT_FRACTION))
    assert replaced.sigma / forecast.sigma == pytest.approx(ratio, rel=1e-12)
    assert {"cats", "chase", "dogs", "mice"} <= set(fitted.vocabulary_)


def test_a_vocabulary_of_no_texts_is_one_of_few():
    for texts in ([], ["cats"]):
        budget = BudgetAccountant(10.0, DELTA)
        with pytest.raises(ValueError, match="No word remains"):
            words(accountant=budget)().fit(texts)
        assert len(budget.entries) == 2
    report = words(vocabulary=["cats"])().fit([]).privacy_report_
    assert (report.n_units, report.epsilon, report.rows) == (0, 0.0, ())
    assert words(vocabulary=["cats"])().fit(TEXTS).privacy_report_ == report


def test_limits_on_frequencies_that_no_count_can_meet_are_refused_before_the_charge():
    budget = BudgetAccountant(10.0, DELTA)
    for options in ({"min_df": 0.5, "max_df": 0.4}, {"min_df": 9, "max_df": 8}, {"max_df": 1}):
        with pytest.raises(ValueError, match="max_df"):
            words(accountant=budget, **options)().fit(TEXTS * 100)
    assert budget.entries == ()
    # Whether these go together is known of a count alone.
    words(min_df=0.1, max_df=250)().fit(TEXTS * 100)


def test_no_message_about_texts_says_which():
    for texts in (["a", None], ["a", "b", None]):
        with pytest.raises(ValueError, match="an item is of type NoneType") as caught:
            words()().fit(texts)
        assert not any(character.isdigit() for character in str(caught.value))


def test_every_query_of_a_fit_that_counts_takes_part():
    rng, seen = np.random.default_rng(0), set()
    for build, draw in MODELS.values():
        seen |= {row.name for row in build().fit(draw(rng, N)).privacy_report_.rows}
    bounded = {name for name, entry in CATALOGUE.items() if hasattr(entry.query, "l2_contribution")}
    elsewhere = {"document_frequencies", "word_buckets", "word_votes", "held_out_scores"}
    assert bounded - elsewhere - seen <= {"expected_counts", "triple_moments"}
