"""A check of data against public lists and bounds, before the budget of a fit is spent."""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.errors import call_unquoted
from sktensor_dp.checks.frames import as_numbers
from sktensor_dp.checks.parameters import OneOf, check_parameters
from sktensor_dp.data.units import Units
from sktensor_dp.estimator.base import PrivateEstimatorMixin
from sktensor_dp.estimator.facts import unit_of
from sktensor_dp.estimator.forecast import least_epsilon, sigma_of_mean
from sktensor_dp.estimator.inputs import checked_groups
from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.privacy.accountant import CHECK, BudgetAccountant
from sktensor_dp.privacy.payer import HasAccountant, Payer, add_report, column_of_units
from sktensor_dp.privacy.plan import COUNT, COUNT_FRACTION, ReleasePlan
from sktensor_dp.privacy.report import UNITS, PrivacyReport
from sktensor_dp.privacy.session import Session
from sktensor_dp.privacy.statement import load_statement
from sktensor_dp.queries.held_out import HeldOutChunk, MatchingRows

# Largest fraction of a budget's mu ** 2 that a check takes: errors of the fit grow by 2 %.
MOST_FRACTION = 0.04
# Deviation of the noise of a fraction of rows above which a check is useless.
USELESS = 0.1
# Longer units count as of this length: a bound on what one of them adds to the mean logarithm.
LONGEST = 10_000
LOG_LONGEST = math.log1p(LONGEST)
# Most tests that are named where noise hides which one fails.
MOST_NAMED = 3
# Deviations of noise up to which a fraction of failing rows may well be noise alone.
BY_CHANCE = 3
# Deviations of noise beyond which nobody need look whether noise alone stopped a check.
PERHAPS_NOISE = 5
# Likely causes where too few rows pass a test: where most rows fail it, where some do, and where
# most fail one that rows may fail.
MOST_FAIL = "Is it the right column, and is the list or range the right one?"
SOME_FAIL = (
    "Does the list lack values, is a range too narrow, or are some cells codes, such as -9, or in "
    "other units?"
)
MOST_MISS = "Is it the right column, and are so many of its cells missing?"
COUNT_THEM = (
    "Whoever may see the file finds the column at no cost: count the cells of each that are "
    "outside its range or list."
)
# Test of each group, added where groups are given.
SEVERAL_ROWS = "groups of several rows"
# Test that a row passes all tests that may not fail, added where these are several: a code in any
# column fails it.
ALL = "all that rows must match"
HARDLY_ANY = (
    "Hardly any person has more than one row: are groups (--person in the command) the column of "
    "persons? If each person has one row, go on with them, as this check was charged for persons."
)


@dataclass(eq=False, repr=False)
class InputCheck(HasAccountant):
    """Released fractions of rows that match, as :func:`check_inputs` returns and prints them.

    Attributes
    ----------
    fractions : dict of str to float
        By test, the mean over units of the fraction of their rows that match, with noise. With
        groups one more is the fraction of "groups of several rows"; with several tests that are
        not in `may_fail` another one is that of rows that pass all of these.
    sigma, sigma_of_all : float
        Standard deviation of the noise of a fraction; and of that of rows that pass all tests,
        which is `sigma` where it is not released.
    too_few : dict of str to float
        Fractions that a fit needs, for each test that fewer rows pass.
    n_units, count_sigma : float
        Number of units, and the deviation of its noise, 0 where it is public.
    length, length_sigma : float or None
        Typical length of a unit (geometric mean of one more), and the deviation of its noise.
    privacy_report_ : PrivacyReport
        What was released, and what it cost.
    """

    unit: str
    neighbours: str
    epsilon: float
    delta: float
    accountant: BudgetAccountant | None
    may_fail: Collection[str] = ()
    least: float = 0.5  # fraction of rows that must pass tests of may_fail, beside noise
    # Likely causes by test: where most rows fail it (nearly all, in may_fail), and where some do.
    causes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)  # by test, for "{}" in its causes
    fractions: dict[str, float] = field(init=False)
    sigma: float = field(init=False)
    sigma_of_all: float = field(init=False)
    n_units: float = field(init=False)
    count_sigma: float = field(init=False)
    privacy_report_: PrivacyReport = field(init=False)
    length: float | None = field(init=False, default=None)
    length_sigma: float | None = field(init=False, default=None)

    def release(self, matches: Any, groups: Any, lengths: Any = None) -> None:
        """Release fractions, and the typical length if `lengths` are given."""
        chunk = self._chunk(matches, groups, lengths)
        tests = [*matches]
        if groups is not None:
            tests.append(SEVERAL_ROWS)
        if isinstance(self.may_fail, str) or not {*self.may_fail} <= {*tests}:
            raise ValueError(f"may_fail must name tests of matches, got {self.may_fail!r}.")
        n_released = chunk.X.shape[1]
        query = MatchingRows(n_released)
        n_copies = n_released - len(tests) - (lengths is not None)  # of rows that pass all tests
        if self.neighbours == "replace_one":
            if not chunk.n_units:
                raise ValueError("matches must hold at least one row, got none.")
            self._refuse_noise(query, chunk.n_units, n_copies)
        plan = self._plan()
        payer = Payer(
            CHECK, self._accountant_to_charge(), column=column_of_units(self, X=None, groups=groups)
        )
        with Session(
            chunk, plan.charged(self.neighbours), payer,
            unit=unit_of(self.unit, grouped=groups is not None), neighbours=self.neighbours,
        ) as ask:  # fmt: skip
            ask.count_units(plan)
            answer = ask(query)
        self.n_units = ask.n_units
        report = ask.report()
        # Noise of the count, by which sums are divided, changes a fraction by its distance from the
        # middle, which is one half at most, times the count's relative error.
        self.count_sigma = sum(row.sigma for row in report.rows if row.name == COUNT)
        by_count = query.middle * self.count_sigma / self.n_units
        self.sigma = math.hypot(answer.sigma, by_count)
        self.sigma_of_all = math.hypot(answer.sigma / math.sqrt(max(n_copies, 1)), by_count)
        released = query.middle + answer.value
        means = np.clip(released, 0.0, 1.0).tolist()
        self.fractions = dict(zip(tests, means, strict=False))  # then length, and copies of ALL
        if n_copies:
            self.fractions[ALL] = float(np.clip(released[-n_copies:].mean(), 0.0, 1.0))
        if lengths is not None and not self.is_hidden:
            self.length = math.expm1(means[len(tests)] * LOG_LONGEST)
            self.length_sigma = sigma_of_length(self.length, self.sigma)
        self.privacy_report_ = replace(report, notes=(*report.notes, str(self)))

    def to_json(self) -> str:
        """Return the released numbers, to go on from them at no further cost."""
        numbers = {**vars(self), "accountant": None, "may_fail": [*self.may_fail]}
        return json.dumps(numbers, default=PrivacyReport.to_json)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Check that was written by `to_json`."""
        check, numbers = cls.__new__(cls), json.loads(text)
        numbers["privacy_report_"] = load_statement(numbers["privacy_report_"])
        vars(check).update(numbers)
        return check

    def _chunk(self, matches: Any, groups: Any, lengths: Any) -> HeldOutChunk:
        """Rows with a column in [0, 1] for each test.

        If `groups` are given, one more column marks units of several rows; if `lengths` are, one is
        the logarithm of the unit's length. Copies of `ALL` are the last ones.
        """
        columns = _flags(matches)
        sizes = None if lengths is None else _lengths(lengths, len(columns))  # of rows, then units
        labels = None
        for one in matches.values():  # each must have its rows in the order of the same labels
            labels = checked_groups(groups, one, len(columns), self.neighbours)
        units = Units.single(len(columns))
        if labels is not None:
            order, units = Units.gathered(labels)
            columns = columns if order is None else columns[order]
            has_several = np.repeat(units.sizes > 1, units.sizes)
            columns = np.column_stack([columns, has_several])
            if sizes is not None:
                sizes = sizes if order is None else sizes[order]
                sizes = np.repeat(np.add.reduceat(sizes, units.starts[:-1]), units.sizes)
        if sizes is not None:
            log_lengths = np.log1p(np.minimum(sizes, LONGEST)) / LOG_LONGEST
            columns = np.column_stack([columns, log_lengths])
        # As many copies as other columns: the mean of their noise is as small as if there were two
        # columns alone, and that of the others larger by the root of 2.
        strict = [place for place, name in enumerate(matches) if name not in self.may_fail]
        passes_all = columns[:, strict].all(axis=1, keepdims=True)
        copies = np.repeat(passes_all, columns.shape[1] * (len(strict) > 1), axis=1)
        return HeldOutChunk(np.column_stack([columns, copies]), y=None, units=units)

    def _plan(self, epsilon: float | None = None) -> ReleasePlan:
        """Plan of the one release, at the check's or another epsilon."""
        epsilon = self.epsilon if epsilon is None else epsilon
        return ReleasePlan.split(epsilon, self.delta, {MatchingRows.name: 1.0})

    def _refuse_noise(self, query: MatchingRows, n_units: int, n_copies: int) -> None:
        """Raise NotEnoughDataError, uncharged, if noise will hide whether rows match."""

        def sigma_at(epsilon: float) -> float:
            cost = self._plan(epsilon).cost_of(query.name)
            sigma = sigma_of_mean(query, cost, n_units, self.neighbours)
            return sigma / math.sqrt(max(n_copies, 1))

        if sigma_at(self.epsilon) > USELESS:
            least = least_epsilon(lambda epsilon: sigma_at(epsilon) <= USELESS)
            ways = ["more units"] if least is None else [f"epsilon={least:g}", "more units"]
            raise NotEnoughDataError(
                f"Noise would hide how many rows match: a check of {counted(n_units, 'unit')} at "
                f"this epsilon has noise with a deviation of {sigma_at(self.epsilon):.0%}. "
                f"Nothing was charged. It needs {' or '.join(ways)}, or look at a few rows instead."
            )

    @property
    def is_hidden(self) -> bool:
        """Return True if noise hides whether rows match."""
        return self.sigma_of_all > USELESS

    @property
    def failing(self) -> dict[str, float]:
        """Fractions of rows that fail, by test, where it is more than noise explains."""
        if self.is_hidden:
            return {}
        strict, optional = self._by_kind()
        found = self._beyond(strict, self.sigma)
        if ALL in self.fractions:
            of_all = self._beyond([ALL], self.sigma_of_all)
            if not of_all:  # it has less noise: single tests then show noise
                found = {}
            elif not found:
                found = of_all
        return found | self._beyond(optional, self.sigma)

    def _beyond(self, names: Sequence[str], sigma: float) -> dict[str, float]:
        """Fractions of rows that fail tests of these names, where more do than noise explains."""
        failing = {name: 1 - self.fractions[name] for name in names}
        return {name: one for name, one in failing.items() if one > quantile(len(names)) * sigma}

    def _possible(self) -> list[str]:
        """Names of tests that may have most of the failures, where noise hides which one has."""
        strict, _ = self._by_kind()
        least = (1 - self.fractions[ALL]) / 2 - quantile(len(strict)) * self.sigma
        return [name for name in strict if 1 - self.fractions[name] >= least] or strict

    def _by_kind(self) -> tuple[list[str], list[str]]:
        """Names of tests of rows: those that may not fail, and those that may."""
        tests = [name for name in self.fractions if name not in (SEVERAL_ROWS, ALL)]
        optional = [name for name in tests if name in self.may_fail]
        return [name for name in tests if name not in optional], optional

    @property
    def too_few(self) -> dict[str, float]:
        """Fractions that a fit needs, for each test that fewer rows pass.

        Of a test that may fail, more than `least` of rows have to pass for certain. Of one for
        several rows of a unit, more than noise. Of any other, all but what noise explains or does
        no harm: wrong data cost the whole epsilon of a fit, a stop the check alone.
        """
        if self.is_hidden:
            return {}
        strict, optional = self._by_kind()
        needed = {}
        if self.sigma <= USELESS:
            needed = dict.fromkeys(optional, self.least + 2 * self.sigma)
            if SEVERAL_ROWS in {*self.fractions} - {*self.may_fail}:
                needed[SEVERAL_ROWS] = 2 * self.sigma
        all_but = 1 - most_failing(self.sigma_of_all, self.n_units)
        joint = [ALL] if ALL in self.fractions else strict  # then there is one test, or none
        if joint and self.fractions[joint[0]] <= all_but:
            failing = self._beyond(strict, self.sigma).items()
            names = [name for name, x in failing if 1 - x <= all_but] or [ALL]
            needed |= dict.fromkeys(names, all_but)
        return {name: least for name, least in needed.items() if self.fractions[name] <= least}

    @property
    def failed(self) -> str:
        """Say in few words which tests too few rows pass; "" if there is none."""
        return "; ".join(
            "hardly any person has several rows"
            if name == SEVERAL_ROWS
            else f"{self.fractions[name]:.1%} pass {name!r}, and {least:.1%} are needed"
            for name, least in self.too_few.items()
        )

    @property
    def mostly_fails(self) -> bool:
        """Return True if most rows fail some test that too few pass."""
        return any(self.fractions[name] < 0.5 for name in self.too_few)

    @property
    def refusal(self) -> str:
        """Reasons why a fit should not go on, in sentences; "" if there is none."""
        said = [HARDLY_ANY] if SEVERAL_ROWS in self.too_few else []
        return " ".join(filter(None, [*said, self.unfit]))

    @property
    def unfit(self) -> str:
        """Say which tests too few rows pass, and by how much; "" if there is none."""
        too_few = {name: least for name, least in self.too_few.items() if name != SEVERAL_ROWS}
        if not too_few:
            return ""
        by_least: dict[float, list[str]] = {}
        for name, least in too_few.items():
            by_least.setdefault(least, []).append(f"{name}: {self.fractions[name]:.1%}")
        shown = "; ".join(
            f"{', '.join(found)}, and {least:.1%}{' of each' * (len(found) > 1)} are needed"
            for least, found in by_least.items()
        )
        sigma, (strict, _) = self.sigma, self._by_kind()
        if ALL in too_few:
            sigma, possible = self.sigma_of_all, self._possible()
            which = " or ".join(map(repr, possible))
            if len(possible) > MOST_NAMED:
                which = f"{len(possible)} of {len(strict)} may be the one"
            shown += f"; which test fails noise hides: {which}"
        shown += f"; noise has a deviation of {sigma:.1%}"
        if {ALL, *strict} & too_few.keys():
            often = stopped_by_noise(self.sigma_of_all, self.n_units)
            shown += f", and alone stops about {often} of checks of rows that all match"
        missing = [1 - self.fractions[name] for name in too_few]
        causes = [*self._causes(too_few)]
        if max(missing) < PERHAPS_NOISE * sigma and {ALL, *strict} >= too_few.keys():
            causes.append("If you have looked, and all rows match, it was noise.")
        return f"Too few rows match ({shown}). {' '.join(causes)}"

    def _causes(self, failed: Collection[str]) -> Iterable[str]:
        """Likely causes why tests `failed`, of all that may have if only the joint one did."""
        strict, _ = self._by_kind()
        names = [name for name in failed if name != ALL]
        if ALL in failed:
            names += self._possible()
            if len(names) > MOST_NAMED:
                return [SOME_FAIL, COUNT_THEM]
        columns: dict[str, list[str]] = {}  # by cause
        for name in dict.fromkeys(names):
            usual = (MOST_FAIL, SOME_FAIL) if name in strict else (MOST_MISS, MOST_MISS)
            # Where the column is a wrong one, nearly all rows fail even a test that rows may fail.
            few = 0.1 if name in self.may_fail else 0.5
            most_fail = self.fractions[name] < few + 2 * self.sigma
            cause = self.causes.get(name, usual)[0 if most_fail else 1]
            columns.setdefault(cause, []).append(self.columns.get(name, name))
        return [cause.replace("{}", ", ".join(named)) for cause, named in columns.items()]

    def __repr__(self) -> str:
        if self.is_hidden:
            return f"Noise hides how many rows match: {', '.join(map(repr, self.fractions))}."
        failing, (_, optional) = self.failing, self._by_kind()

        def listed(names: Sequence[str]) -> str:
            return ", ".join(f"{failing[name]:.1%} fail {name!r}" for name in names)

        found = listed([name for name in failing if name not in optional])
        if may_fail := [name for name in optional if name in failing]:
            found += "; perhaps " if found else ""
            found += f"{listed(may_fail)}, as up to {1 - self.least:.0%} may"
        said = f"Of rows perhaps {found}" if found else "All rows may match"
        sigma = self.sigma_of_all if ALL in failing else self.sigma
        said += f"; noise{' of each' * (len(failing) > 1)} has a deviation of {sigma:.1%}"
        if any(one < BY_CHANCE * sigma for one in failing.values()):
            said += f", so that up to {BY_CHANCE * sigma:.1%} may be noise alone"
        said += "."
        if self.length is not None:
            said += f" The typical length is {self.length:.3g}; noise has a deviation of "
            said += f"{self.length_sigma:.2g}."
        return said


def _flags(matches: Any) -> np.ndarray[Any, Any]:
    """Say for each row and test whether it matches: booleans of shape (n_rows, n_tests)."""
    # The number of rows may be private.
    expected = (
        "matches must map the name of each test to an array of booleans, True where a row matches; "
        "one value for each row, and none missing"
    )
    if not isinstance(matches, Mapping) or not matches:
        raise ValueError(f"{expected}.")
    tests = [as_numbers(test, "matches") for test in matches.values()]
    columns = [call_unquoted(partial(np.asarray, test), "matches") for test in tests]
    for name, column in zip(matches, columns, strict=True):
        if column.dtype != bool or column.ndim != 1 or len(column) != len(columns[0]):
            raise ValueError(f"{expected}; that of {name!r} is none.")
    return np.column_stack(columns)


def _lengths(given: Any, n_rows: int) -> np.ndarray[Any, Any]:
    """Lengths of rows as numbers; ValueError if they are none."""
    wrong = "lengths must have one finite number >= 0 for each row."
    lengths: np.ndarray[Any, Any] = call_unquoted(
        lambda: np.asarray(as_numbers(given, "lengths"), dtype=np.float64), "lengths",
        lambda _: wrong,
    )  # fmt: skip
    if lengths.shape != (n_rows,) or not (np.isfinite(lengths) & (lengths >= 0)).all():
        raise ValueError(wrong)  # the number of rows may be private
    return lengths


def check_inputs(
    matches: Mapping[str, ArrayLike],
    *,
    groups: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    may_fail: Collection[str] = (),
    unit: str = "sample",
    neighbours: str = "replace_one",
    epsilon: float = 0.1,
    delta: float = 1e-6,
    accountant: BudgetAccountant | None = None,
) -> InputCheck:
    """Check data against public lists and bounds, before the budget of a fit is spent.

    A wrong column or key of a join finds nothing, and costs as much as a right one. A check finds
    it at a small part of the budget.

    Parameters
    ----------
    matches : mapping of str to array-like of bool, each of shape (n_rows,)
        For each test, such as "item is listed" or "age in bounds", whether a row passes it. Each
        value may depend on its row and on public numbers alone.
    groups : array-like of shape (n_rows,), optional
        Label of the person behind each row: protects all rows of a person, who all count alike.
        One more test finds labels that are ids of rows: "groups of several rows".
    lengths : array-like of shape (n_rows,), optional
        Length of each row, such as its number of words: forecasts take the typical length of a
        unit (of all rows of a group), which is then released too, up to 10,000.
    may_fail : collection of str, default=()
        Names of tests that nearly half of the rows may fail, such as "age given"; and
        "groups of several rows" where hardly any person may have more than one.
    unit : str, default="sample"
        Name of what a row is, as the fit protects it: "sample", "document" or "entry".
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        Relation of the fit. A private number of units is counted for one percent of the check.
    epsilon, delta : float, default=0.1 and 1e-6
        Cost of the check; :meth:`BudgetAccountant.split` divides a budget.
    accountant : BudgetAccountant, optional
        Charged before noise is drawn; by default that of the surrounding ``with`` block.

    Returns
    -------
    InputCheck
        ``fractions`` by test, the ``sigma`` of their noise, the typical ``length`` with a
        ``length_sigma`` of its own, and ``privacy_report_``. It prints what they mean. With a
        ``sigma`` above .1 it shows nothing: where the number of units is public,
        such a check is refused before the charge.

    Raises
    ------
    NotEnoughDataError
        If more rows fail some test than noise explains and does no harm. Noise alone stops at most
        1 of 40 checks of data that all pass; the message says how many. A fraction of
        ``0.5 / sqrt(n)`` of `n` units does no harm: it moves an average by less than units may
        differ by chance. Also if it is not certain that most rows pass a test in `may_fail`, or,
        with `groups`, that any person has several rows. The message shows released and needed
        fractions.
        The check is charged all the same, and is the error's ``check``: to go on, fit with the
        rest of the budget. Uncharged, if noise will hide the result.
    ValueError
        If `matches` are no booleans, groups are malformed, or `may_fail` names no test; nothing is
        charged.

    Notes
    -----
    **Privacy.** *Unit*: a row; with `groups` all rows of a group, by any number of others.
    *Public*: the number of units, unless they come and go, names and number of tests. *Releases*:
    ``matching_rows``, whose noise has a standard deviation of ``sqrt(n_tests) / (n mu)`` for `n`
    units (with groups one test more, with lengths one more), or, with several tests not in
    `may_fail`, ``sqrt(2 n_tests) / (n mu)``, and ``sqrt(2) / (n mu)`` of rows that pass all of
    these. Where their number is private, these deviations are half as large, the noise of
    ``unit_count`` is added, and `mu` is what that leaves. *Not covered*: tests whose answer for a
    row depends on other rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import check_inputs
    >>> listed = np.isin(["Up", "Alien", "Up", "Jaws"] * 5000, ["Up", "Alien", "Jaws"])
    >>> check = check_inputs({"film is listed": listed})
    >>> check.fractions["film is listed"] > 0.9, check.sigma < 0.01
    (True, True)
    """
    check = InputCheck(unit, neighbours, epsilon, delta, accountant, may_fail)
    of_fits = PrivateEstimatorMixin._privacy_constraints
    constraints = {name: of_fits[name] for name in ("epsilon", "delta", "accountant")}
    constraints["unit"] = [OneOf(*UNITS)]
    constraints["neighbours"] = [OneOf("replace_one", "add_remove")]
    check_parameters(check, constraints)
    check.release(matches, groups, lengths)
    if refusal := check.refusal:
        error = NotEnoughDataError(f"{refusal} Only this check was charged.")
        error.check = check
        add_report(error, check.privacy_report_)
        error.add_note(  # in Python
            "To go on all the same, fit with the rest of the budget: the check is paid for."
        )
        if strict := [name for name in check.too_few if name not in (*may_fail, ALL)]:
            error.add_note(f"If so many may fail, pass may_fail={strict}.")
        raise error
    return check


def quantile(n_tests: int) -> float:
    """Number z of deviations: in 1 of 40 checks at most any of `n_tests` noises is below -z."""
    return NormalDist().inv_cdf(1 - 0.025 / max(n_tests, 1))


def harmless(n_units: float) -> float:
    """Largest standard error of an average of numbers in [0, 1] over units.

    A smaller fraction of units outside [0, 1], counted as 0 or 1, moves the average by less.
    """
    return 0.5 / math.sqrt(max(n_units, 1))


def most_failing(sigma_of_all: float, n_units: float) -> float:
    """Largest fraction of rows that may fail a test, by noise and without harm."""
    return math.hypot(quantile(1) * sigma_of_all, harmless(n_units))


def stopped_by_noise(sigma_of_all: float, n_units: float) -> str:
    """Fraction of checks, in words, that noise alone stops where all rows match."""
    if sigma_of_all == 0:
        return "none"
    often = NormalDist().cdf(-most_failing(sigma_of_all, n_units) / sigma_of_all)
    return f"{max(often, 0.001):.1%}"


def sigma_of_length(length: float, sigma: float) -> float:
    """Deviation of the noise of a typical length, of a check whose fractions have `sigma`."""
    # The length is exp(L) - 1, where L / LOG_LONGEST is such a fraction.
    return (1 + length) * LOG_LONGEST * sigma


def sigmas_of_check(
    n_units: int, mu: float, n_columns: int, n_strict: int, neighbours: str
) -> tuple[float, float]:
    """Deviations of the noise of a check at `mu`: of each fraction, and of rows that pass all."""
    n_copies = n_columns * (n_strict > 1)
    query = MatchingRows(n_columns + n_copies)
    sensitivity, by_count = query.sensitivity("l2", neighbours), 0.0
    if neighbours == "add_remove":  # noise of the count, as in `InputCheck.release`
        by_count = query.middle / math.sqrt(COUNT_FRACTION)
    of_all = math.hypot(sensitivity / math.sqrt(max(n_copies, 1)), by_count)
    return math.hypot(sensitivity, by_count) / (n_units * mu), of_all / (n_units * mu)


def fraction_of_check(
    n_units: int, mu: float, n_columns: int, n_strict: int, neighbours: str
) -> float:
    """Fraction of a budget `mu` (of its square) that a check takes; 0 where it would be no use."""
    _, sigma = sigmas_of_check(n_units, mu, n_columns, n_strict, neighbours)
    # Finer noise would find no more: at a fraction f of mu^2 its deviation is `sigma / sqrt(f)`.
    enough = (sigma * quantile(1) / harmless(n_units)) ** 2
    fraction = min(MOST_FRACTION, enough) or MOST_FRACTION  # without noise the latter
    return fraction if sigma <= USELESS * math.sqrt(fraction) else 0.0
