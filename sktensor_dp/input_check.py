"""A check of data against public lists and bounds, before the budget of a fit is spent."""

import math
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.checks.callers import level_of_caller
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
from sktensor_dp.privacy.answer import TAIL
from sktensor_dp.privacy.payer import HasAccountant, Payer, column_of_units
from sktensor_dp.privacy.plan import COUNT, COUNT_FRACTION, ReleasePlan
from sktensor_dp.privacy.report import UNITS, PrivacyReport
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.scores import HeldOutChunk, MatchingRows

# Standard deviation of noise that a check aims at, largest fraction of a budget that it takes, and
# the deviation from which on it is useless.
AIM, MOST_FRACTION, USELESS = 0.01, 0.02, 0.1
# Longer units count as of this length: a bound on what one of them adds to the mean logarithm.
LONGEST = 10_000
LOG_LONGEST = math.log1p(LONGEST)
WHY = (
    "Is it the right column, are list and bounds the right ones, or are cells missing, perhaps "
    "with a code such as -9?"
)
# Test of each group that comes with the tests of rows.
SEVERAL_ROWS = "groups of several rows"
HARDLY_ANY = (
    "Hardly any person has more than one row: are groups (--person in the command) the column of "
    "persons? If each person has one row, leave it out, which protects the same; where earlier "
    "fits of the budget protect persons, fit without this check (--no-check): then all add up."
)


@dataclass(eq=False, repr=False)
class InputCheck(HasAccountant):
    """Released fractions of rows that match, as :func:`check_inputs` returns and prints them.

    Attributes
    ----------
    fractions : dict of str to float
        Mean over units of the fraction of their rows that match, for each test, with noise; and
        with groups the fraction of "groups of several rows".
    doubted : list of str
        Tests that more rows fail than noise explains, without those that may fail.
    sigma : float
        Standard deviation of that noise.
    n_units, count_sigma : float
        Number of units, and the deviation of its noise where it is private.
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
    fractions: dict[str, float] = field(init=False)
    doubted: list[str] = field(init=False)
    sigma: float = field(init=False)
    n_units: float = field(init=False)
    count_sigma: float = field(init=False)
    privacy_report_: PrivacyReport = field(init=False)
    length: float | None = field(init=False, default=None)
    length_sigma: float | None = field(init=False, default=None)

    def release(
        self, matches: Any, groups: Any, may_fail: Collection[str], lengths: Any = None
    ) -> list[str]:
        """Release fractions, and the typical length; return the tests that too few rows pass."""
        chunk = self._chunk(matches, groups, lengths)
        tests = [*matches]
        if groups is not None:
            tests.append(SEVERAL_ROWS)
        if isinstance(may_fail, str) or not {*may_fail} <= {*tests}:
            raise ValueError(f"may_fail must name tests of matches, got {may_fail!r}.")
        query = MatchingRows(chunk.X.shape[1])
        number_is_private = self.neighbours == "add_remove"
        if not number_is_private:
            if not chunk.n_units:
                raise ValueError("matches must hold at least one row, got none.")
            self._refuse_noise(query, chunk.n_units)
        plan = self._plan()
        payer = Payer(
            CHECK, self._accountant_to_charge(), column=column_of_units(self, X=None, groups=groups)
        )
        with Session(
            chunk, plan.before_count() if number_is_private else plan, payer,
            unit=unit_of(self.unit, grouped=groups is not None), neighbours=self.neighbours,
        ) as ask:  # fmt: skip
            if number_is_private:
                ask.count_units(plan)
            answer = ask(query)
        self.n_units = ask.n_units
        report = ask.report()
        # Where the divisor is a noisy count, too, it changes a fraction by at most the middle (the
        # largest distance from the middle) times its own relative error.
        self.count_sigma = sum(row.sigma for row in report.rows if row.name == COUNT)
        self.sigma = math.hypot(answer.sigma, query.middle * self.count_sigma / self.n_units)
        means = np.clip(query.middle + answer.value, 0.0, 1.0).tolist()
        self.fractions = dict(zip(tests, means, strict=False))
        if lengths is not None and not self.is_hidden:
            logarithm = means[-1] * LOG_LONGEST
            self.length = math.expm1(logarithm)
            self.length_sigma = math.exp(logarithm) * LOG_LONGEST * self.sigma
        self.privacy_report_ = replace(report, notes=(*report.notes, str(self)))
        strict = {*matches} - {*may_fail}
        self.doubted = [name for name in self.failing if name in strict]
        if self.is_hidden:
            return []
        # As many may lie beyond public bounds as "auto" leaves beyond those that it finds.
        least = 1 - TAIL - self._lost(len(strict))
        above_half = dict(zip(tests, answer.value.tolist(), strict=False))
        # Perhaps not half of the rows pass; or of a test that may not fail, surely not nearly all.
        low = [
            name for name in matches
            if above_half[name] < 2 * answer.sigma
            or (name in strict and self.fractions[name] < least)
        ]  # fmt: skip
        hardly_any = self.fractions.get(SEVERAL_ROWS, 1.0) <= 2 * self.sigma
        if hardly_any and SEVERAL_ROWS not in may_fail:
            low.append(SEVERAL_ROWS)
        return low

    def _chunk(self, matches: Any, groups: Any, lengths: Any) -> HeldOutChunk:
        """Rows with a column in [0, 1] for each test.

        If `groups` are given, one more column marks units of several rows; if `lengths` are, the
        last one is the logarithm of the unit's length.
        """
        flags = _flags(matches)
        sizes = None if lengths is None else _lengths(lengths, len(flags))  # of rows, then units
        labels = None
        for one in matches.values():  # labels are the same for each, which must have their order
            labels = checked_groups(groups, one, len(flags), self.neighbours)
        units = Units.single(len(flags))
        if labels is not None:
            order, units = Units.gathered(labels)
            flags = flags if order is None else flags[order]
            has_several = np.repeat(units.sizes > 1, units.sizes)
            flags = np.column_stack([flags, has_several])
            if sizes is not None:
                sizes = sizes if order is None else sizes[order]
                sizes = np.repeat(np.add.reduceat(sizes, units.starts[:-1]), units.sizes)
        if sizes is not None:
            log_lengths = np.log1p(np.minimum(sizes, LONGEST)) / LOG_LONGEST
            flags = np.column_stack([flags, log_lengths])
        return HeldOutChunk(flags, y=None, units=units)

    def _plan(self, epsilon: float | None = None) -> ReleasePlan:
        """Plan of the one release, at the check's or another epsilon."""
        epsilon = self.epsilon if epsilon is None else epsilon
        return ReleasePlan.split(epsilon, self.delta, {MatchingRows.name: 1.0})

    def _refuse_noise(self, query: MatchingRows, n_units: int) -> None:
        """Raise NotEnoughDataError, uncharged, if noise will hide whether rows match."""

        def sigma_at(epsilon: float) -> float:
            cost = self._plan(epsilon).cost_of(query.name)
            return sigma_of_mean(query, cost, n_units, self.neighbours)

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
        return self.sigma > USELESS

    def _lost(self, n_tests: int) -> float:
        """Most that noise takes from any of `n_tests` fractions, but in 1 of 40 checks."""
        return NormalDist().inv_cdf(1 - 0.025 / max(n_tests, 1)) * self.sigma

    @property
    def doubts(self) -> str:
        """Doubt that the data is what it was declared to be; "" if there is none.

        Even where too few rows fail to refuse a fit, they may hold codes, which become a group.
        """
        failing = ", ".join(map(repr, self.doubted))
        return f"Some rows fail {failing}. {WHY}" if failing else ""

    def __repr__(self) -> str:
        if self.is_hidden:
            return f"Noise hides how many rows match: {', '.join(map(repr, self.fractions))}."
        lost = ", ".join(f"{part:.0%} fail {name!r}" for name, part in self.failing.items())
        said = f"Of rows perhaps {lost}" if lost else "All rows may match"
        said += f"; noise has a deviation of {self.sigma:.1%}."
        if self.length is not None:
            said += f" The typical length is {self.length:.3g}; noise has a deviation of "
            said += f"{self.length_sigma:.2g}."
        return said

    @property
    def failing(self) -> dict[str, float]:
        """Fractions of rows that fail, by test, where it is more than noise explains."""
        if self.is_hidden:
            return {}
        least = max(round(1 - self._lost(len(self.fractions)), 2), 0.0)
        percents = {name: round(fraction, 2) for name, fraction in self.fractions.items()}
        return {
            name: 1 - fraction for name, fraction in percents.items()
            if fraction < least and name != SEVERAL_ROWS
        }  # fmt: skip


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
        Names of tests that up to one half of the rows may fail, such as "age given"; and
        "groups of several rows" where hardly any person may have more than one.
    unit : str, default="sample"
        Name of what a row is, as the fit protects it: "sample", "document" or "entry".
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        Relation of the fit. A private number of units is counted for one percent of the check.
    epsilon, delta : float, default=0.1 and 1e-6
        Cost of the check; :meth:`BudgetAccountant.split` divides a budget.
    accountant : BudgetAccountant, optional
        Charged before anything is computed; by default that of the surrounding ``with`` block.

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
        If it is certain, in 39 of 40 checks, that over 1 % of the rows fail some test,
        or for those in `may_fail` not certain that most pass it. The message shows the released
        fraction. With `groups` if it is not certain that any person has several rows. The check is
        charged all the same. Fewer that fail a test not in `may_fail` are warned of, where noise
        does not explain them. Uncharged, if noise will hide the result.
    ValueError
        If `matches` are no booleans, groups are malformed, or `may_fail` names no test; nothing is
        charged.

    Notes
    -----
    **Privacy.** *Unit*: a row; with `groups` all rows of a group, by any number of others.
    *Public*: the number of units, unless they come and go, names and number of tests. *Releases*:
    ``matching_rows``, whose noise has a standard deviation of ``sqrt(n_tests) / (n mu)`` for `n`
    units (with groups one test more, with lengths one more), and ``unit_count`` where their
    number is private. *Not covered*: tests whose answer for a row depends on other rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import check_inputs
    >>> listed = np.isin(["Up", "Alien", "Up", "Jaws"] * 5000, ["Up", "Alien", "Jaws"])
    >>> check = check_inputs({"film is listed": listed})
    >>> check.fractions["film is listed"] > 0.9, check.sigma < 0.01
    (True, True)
    """
    check = InputCheck(unit, neighbours, epsilon, delta, accountant)
    of_fits = PrivateEstimatorMixin._privacy_constraints
    constraints = {name: of_fits[name] for name in ("epsilon", "delta", "accountant")}
    constraints["unit"] = [OneOf(*UNITS)]
    constraints["neighbours"] = [OneOf("replace_one", "add_remove")]
    check_parameters(check, constraints)
    if low := check.release(matches, groups, may_fail, lengths):
        shown = ", ".join(f"{name}: {check.fractions[name]:.0%}" for name in low)
        reason = f"Too few rows match ({shown}; noise has a deviation of {check.sigma:.1%}). {WHY}"
        if low == [SEVERAL_ROWS]:
            reason = HARDLY_ANY
        error = NotEnoughDataError(f"{reason} Only this check was charged.")
        error.add_note(f"If up to half of the rows may fail, pass may_fail={low}.")  # in Python
        raise error
    if doubts := check.doubts:
        warnings.warn(doubts, stacklevel=level_of_caller())
    return check


def fraction_of_check(n_units: int, mu: float, n_tests: int, neighbours: str) -> float:
    """Fraction of a budget `mu` (of its square) that a check takes; 0 where it would be no use."""
    if math.isinf(mu):
        return MOST_FRACTION
    query = MatchingRows(n_tests)
    sensitivity = query.sensitivity("l2", neighbours)
    if neighbours == "add_remove":  # the count's noise as in `ask`
        sensitivity = math.hypot(sensitivity, query.middle / math.sqrt(COUNT_FRACTION))
    # At a fraction f of mu^2 the deviation is `sigma_of_all / sqrt(f)`.
    sigma_of_all = sensitivity / (n_units * mu)
    fraction = min(MOST_FRACTION, (sigma_of_all / AIM) ** 2)
    return fraction if sigma_of_all <= USELESS * math.sqrt(fraction) else 0.0
