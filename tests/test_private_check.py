"""A check of data against public lists, charged for itself."""

import re
from math import inf, sqrt

import numpy as np
import pandas as pd
import pytest

from sktensor_dp import BudgetAccountant, NotEnoughDataError, check_inputs
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.private_check import (
    ALL,
    LONGEST,
    MOST_FAIL,
    MOST_FRACTION,
    SOME_FAIL,
    USELESS,
    InputCheck,
    fraction_of_check,
    harmless,
    most_failing,
    sigmas_of_check,
    stopped_by_noise,
)

PERSONS = np.arange(30_000) // 3


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_a_wrong_key_is_found_and_only_the_check_is_spent(neighbours: str, seed: int) -> None:
    rng, budget = np.random.default_rng(seed), BudgetAccountant(20.0, 1e-6)
    mu = gaussian_mu(20.0, 1e-6)
    fraction = 0.05  # more than checks take of a budget
    assert 0 < fraction_of_check(10_000, mu, 3, 2, neighbours) < fraction
    part, _ = budget.split([fraction, 1 - fraction])
    given = {"groups": PERSONS, "neighbours": neighbours, "accountant": budget, **part}
    listed = pd.Series(rng.random(len(PERSONS)) < 0.998)
    check = check_inputs({"listed": listed, "in bounds": listed | True}, **given)
    # Five deviations, of which the mean of 30,000 coins has its own.
    assert abs(check.fractions["listed"] - 0.998) < 5 * check.sigma + 0.005
    assert check.sigma < 0.05
    assert check.privacy_report_.unit == "person"
    assert str(check) in check.privacy_report_.notes
    # A wrong key, one that is wrong for every other row, and a code in one row of twenty.
    for share in (0.08, 0.48, 0.95):
        with pytest.raises(NotEnoughDataError, match=r"Too few rows match \(listed: ") as raised:
            check_inputs({"listed": rng.random(len(PERSONS)) < share, "in bounds": listed}, **given)
        assert "in bounds" not in str(raised.value)
        # One cause, by how many rows fail.
        causes = {MOST_FAIL: share < 0.5, SOME_FAIL: share > 0.5}
        assert {cause: cause in str(raised.value) for cause in causes} == causes
        check = raised.value.check
        assert raised.value.privacy_report_ is check.privacy_report_
        assert abs(check.fractions["listed"] - share) < 5 * check.sigma + 0.02
        assert check.privacy_report_.epsilon == pytest.approx(part["epsilon"], rel=1e-3)
    tests = {"listed": rng.random(len(PERSONS)) < 0.7, "in bounds": listed}
    said = r"(?s)\(listed: (7.|6\d).\d%, and 9.*%.*paid for.*may_fail=\['listed'\]"
    with pytest.raises(NotEnoughDataError, match=said):
        check_inputs(tests, **given)
    some = check_inputs(tests, may_fail=["listed"], **given)
    said = r"perhaps (3.|2\d).\d% fail 'listed', as up to 50% may; noise of each has"
    assert re.search(said, str(some))
    assert str(some) == str(InputCheck.from_json(some.to_json()))
    assert len({entry.fit for entry in budget.entries}) == 6
    assert budget.total()[0] < 10


@pytest.mark.parametrize("names", [["listed"], ["listed", "in bounds"]])
def test_a_stop_says_that_it_may_be_noise_where_that_may_be(names: list[str], seed: int) -> None:
    rows = dict.fromkeys(names, np.ones(6000, bool))
    check = check_inputs(rows, may_fail=names)
    check.may_fail = ()
    check.fractions = dict.fromkeys([*names, ALL][: 2 * len(names) - 1], 1.0)
    sigma, last = check.sigma_of_all, [*check.fractions][-1]
    noise = "If you have looked, and all rows match, it was noise."
    for deviations, is_said in ((3, True), (6, False)):
        check.fractions[last] = 1 - deviations * sigma
        assert "Too few rows match" in check.refusal
        assert check.refusal.endswith(noise) == is_said


def test_a_person_with_many_rows_counts_as_one() -> None:
    groups = np.append(np.zeros(10_000, int), np.arange(1, 1001))
    check = check_inputs({"a": groups <= 600}, groups=groups, epsilon=np.inf, may_fail=["a"])
    assert check.fractions["a"] == pytest.approx(601 / 1001)
    assert check.sigma == 0


def test_ids_of_rows_are_no_persons(seed: int) -> None:
    rows, budget = {"all": np.ones(6000, bool)}, BudgetAccountant(4.0)
    given = {"groups": np.arange(6000), "epsilon": 0.5, "accountant": budget}
    test = "groups of several rows"
    allowed = check_inputs(rows, may_fail=["all", test], **given)
    # Noise lets ids pass in 1 of 44 checks.
    assert allowed.fractions[test] < 5 * allowed.sigma
    assert "several" not in str(allowed)
    given["epsilon"] = np.inf
    with pytest.raises(NotEnoughDataError, match="Hardly any person has more than one row: are"):
        check_inputs(rows, **given | {"accountant": None})
    # Said, too, beside rows that do not match.
    said = "Hardly any person .* as this check was charged for persons. Too few rows match .all: "
    with pytest.raises(NotEnoughDataError, match=said):
        check_inputs({"all": np.arange(6000) % 2 > 0}, **given | {"accountant": None})
    given |= {"groups": np.arange(6000) // 4, "epsilon": 0.5}
    check = check_inputs(rows, may_fail=["all"], **given)
    assert abs(check.fractions[test] - 1) < 5 * check.sigma


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_typical_lengths_are_released_by_person_and_cut_at_a_bound(neighbours, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.poisson(8, len(PERSONS))
    given = {"lengths": lengths, "epsilon": 1.0, "neighbours": neighbours, "may_fail": ["given"]}
    check = check_inputs({"given": np.ones(len(PERSONS), bool)}, **given)
    typical = np.expm1(np.log1p(lengths).mean())
    assert 0 < check.length_sigma < 0.5
    assert abs(check.length - typical) < 5 * check.length_sigma
    assert f"The typical length is {check.length:.3g}; noise has a deviation of" in str(check)
    together = check_inputs({"given": np.ones(len(PERSONS), bool)}, groups=PERSONS, **given)
    typical = np.expm1(np.log1p(np.bincount(PERSONS, lengths)).mean())
    assert abs(together.length - typical) < 5 * together.length_sigma
    # One person moves the mean logarithm by no more than a bound allows.
    lengths[0] = 10**12
    exact = check_inputs({"given": lengths >= 0}, lengths=lengths, epsilon=np.inf)
    lengths[0] = LONGEST
    assert exact.length == pytest.approx(np.expm1(np.log1p(lengths).mean()))
    assert check_inputs({"given": lengths >= 0}, epsilon=1.0).length is None


@pytest.mark.parametrize("lengths", [[1], [1, np.nan], [1, -1], [1, np.inf], ["a", "b"], [[1, 2]]])
def test_lengths_that_are_none_are_refused_before_the_charge(lengths):
    budget = BudgetAccountant(1.0)
    with pytest.raises((ValueError, TypeError), match="lengths"):
        check_inputs({"a": [True, True]}, lengths=lengths, accountant=budget)
    assert not budget.entries


def test_no_row_is_said_to_fail_by_noise_alone(seed: int) -> None:
    """Of 16 tests that all rows pass, in 100 runs by a chance of 2.5 % for each run."""
    tests = {str(number): np.ones(2000, bool) for number in range(16)}
    budget = BudgetAccountant(epsilon=np.inf)
    checks = [
        check_inputs(tests, epsilon=0.4, accountant=budget, may_fail=[*tests]) for _ in range(100)
    ]
    # Six deviations of the number of runs above 2.5.
    assert sum("may; noise" in str(check) for check in checks) <= 12


def test_what_noise_hides_is_refused_or_not_decided() -> None:
    """Before the charge where the number of units is public."""
    few, budget = {"listed": np.ones(500, bool)}, BudgetAccountant(8.0)
    check = check_inputs(few, neighbours="add_remove", epsilon=0.01)
    assert check.is_hidden
    assert str(check) == "Noise hides how many rows match: 'listed'."
    for delta in (1e-6, 0):
        with pytest.raises(NotEnoughDataError, match=r"Nothing was charged\. It needs") as raised:
            check_inputs(few, epsilon=0.01, delta=delta, accountant=budget)
        least = float(re.search(r"epsilon=(\S+) or more units", str(raised.value))[1])
        assert not budget.entries
        check = check_inputs(few, epsilon=least, delta=delta)
        assert 0.95 * USELESS < check.sigma <= USELESS


def test_its_part_of_a_budget_follows_from_public_numbers() -> None:
    mu = gaussian_mu(1.0, 1e-6)
    sigmas = []
    for n in (100, 1_000, 10_000, 1_000_000):
        fraction = fraction_of_check(n, mu, 2, 2, "replace_one")
        assert 0 <= fraction <= MOST_FRACTION
        sigmas.append(np.sqrt(2 / fraction) / (n * mu) if fraction else np.inf)
    _, finest = sigmas_of_check(10_000, mu * sqrt(MOST_FRACTION), 2, 2, "replace_one")
    assert sigmas[:3] == pytest.approx([np.inf, 10 * finest, finest], rel=1e-4)
    assert sigmas[1] < USELESS
    # Of many units it takes no more than finds what moves an average by its standard error.
    assert most_failing(sigmas[3], 1_000_000) == pytest.approx(sqrt(2) * harmless(1_000_000))


@pytest.mark.parametrize(("n", "epsilon"), [(3000, 4), (20_000, 0.5), (20_000, 4), (1_000_000, 1)])
@pytest.mark.parametrize("n_columns", [2, 10])
def test_codes_that_spoil_averages_stop_a_fit_and_clean_rows_do_not(n, epsilon, n_columns, seed):
    """Codes in one column of several, and as many fractions again of cells that may be missing."""
    tests, may_fail = ([f"{of} {one}" for one in range(n_columns)] for of in ("within", "given"))
    sizes, mu = (2 * n_columns, n_columns, "replace_one"), gaussian_mu(epsilon, 1e-6)
    rows = dict.fromkeys([*may_fail, *tests], np.ones(3000, bool))
    rows["within 1"] = np.arange(3000) % 3 > 0
    check = InputCheck("sample", "replace_one", 1.0, 1e-6, BudgetAccountant(inf), may_fail)
    check.release(rows, None)
    of_this = sigmas_of_check(3000, gaussian_mu(1.0, 1e-6), *sizes)
    assert (check.sigma, check.sigma_of_all) == pytest.approx(of_this, rel=1e-3)
    assert abs(check.fractions[ALL] - 2 / 3) < 5 * check.sigma_of_all
    check.n_units, names = n, [*check.fractions]
    mu *= sqrt(fraction_of_check(n, mu, *sizes))
    check.sigma, check.sigma_of_all = sigmas_of_check(n, mu, *sizes)
    sigmas = [check.sigma_of_all if name == ALL else check.sigma for name in names]
    noises = np.random.default_rng(seed).normal(0, sigmas, (500, len(names)))

    def n_stopped(failing: float) -> int:
        """Of 500 checks where so many fail one test."""
        refused = accused = 0
        for noise in noises:
            fails = [failing * (name in ("within 1", ALL)) for name in names]
            check.fractions = dict(zip(names, 1 + noise - fails, strict=True))
            refused += bool(check.refusal)
            assert check.failing or not check.refusal
            assert ("which test fails noise hides: " in check.refusal) is (ALL in check.too_few)
            named = {*re.findall("within [0-9]+", check.refusal)}
            accused += bool(named) and "within 1" not in named
        # Other tests are named in 1 of 40 at most.
        assert failing == 0 or accused < 12.5 + 6 * sqrt(12.5)
        return refused

    # As often as is said, in 1 of 40 at most, and six deviations more.
    often = 500 * float(stopped_by_noise(check.sigma_of_all, n).removesuffix("%")) / 100
    assert often <= 12.5
    assert abs(n_stopped(0.0) - often) < 6 * sqrt(often + 0.5)
    assert n_stopped(harmless(n) / 2) < 25 + 6 * sqrt(25)
    # Of three in a hundred 97 % are found, of one in a hundred of 20,000 rows 85 %.
    assert n_stopped(0.03) > 485 - 6 * sqrt(15)
    assert n < 20_000 or n_stopped(0.01) > 425 - 6 * sqrt(64)


@pytest.mark.parametrize(
    "matches",
    [{}, [True], {"a": [1, 0]}, {"a": [True, None]}, {"a": [True]}, {"a": [True, False, True]},
     {"a": pd.array([True, None])}],
    ids=str,
)  # fmt: skip
def test_what_is_no_test_of_each_row_is_refused_before_the_charge(matches: object) -> None:
    budget = BudgetAccountant(1.0)
    with pytest.raises(ValueError, match=r"matches must map|length is not the number|one row"):
        check_inputs(matches, groups=[1, 2], accountant=budget)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'unit' parameter"):
        check_inputs({"a": [True, False]}, unit="text", accountant=budget)
    for names in ("a", ["b"]):
        with pytest.raises(ValueError, match="may_fail must name tests"):
            check_inputs({"a": [True, False]}, may_fail=names, accountant=budget)
    assert not budget.entries
