"""Empirical lower bounds on what a fit gives away; ``docs/proofs/audits.md`` has the proofs."""

import math
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri
from scipy.stats import beta, binom
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.privacy.accountant import OPENED
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.tensor.arrays import Floats

__all__ = [
    "AuditResult",
    "OneRunResult",
    "WorstCase",
    "audit",
    "audit_in_one_run",
    "audit_samples",
    "guesses_from_scores",
    "one_run_audit",
    "worst_case",
]
# Grid for the largest rejected epsilon; no number of canaries shows more than its end.
TRIED = np.linspace(0.0, 30.0, 60_001)


@dataclass(frozen=True, kw_only=True)
class _Bounds:
    """Lower bounds on the privacy parameters of a mechanism, beside its claims."""

    epsilon_lower: float
    mu_lower: float
    delta: float
    confidence: float
    epsilon_claim: float | None = None
    mu_claim: float | None = None

    @property
    def refutes_claim(self) -> bool:
        """True if a bound exceeds its claim: the claim is false, with this confidence."""
        pairs = ((self.epsilon_lower, self.epsilon_claim), (self.mu_lower, self.mu_claim))
        return any(claim is not None and lower > claim for lower, claim in pairs)


@dataclass(frozen=True, kw_only=True)
class AuditResult(_Bounds):
    """Lower bounds on the privacy parameters of a mechanism.

    Attributes
    ----------
    epsilon_lower, mu_lower : float
        Lower bounds on epsilon at `delta`, and on mu of Gaussian differential privacy.
    delta, confidence : float
        Delta at which epsilon is bounded, and the probability with which both bounds hold.
    epsilon_claim, mu_claim : float or None
        Promise of the mechanism; None where it is not known, or has no mu.
    threshold : float
        The event behind `epsilon_lower` is that a statistic exceeds it (negated
        statistic and threshold, if the statistic falls).
    true_positive_rate, false_positive_rate : float
        Rates of the event on the neighbour and on the data.
    n_runs : int
        Runs counted on each data set; those that chose the event are not among them.
    """

    threshold: float
    true_positive_rate: float
    false_positive_rate: float
    n_runs: int

    def __str__(self) -> str:
        def beside_claim(lower: float, claim: float | None) -> str:
            return f"{lower:.4g}" + ("" if claim is None else f" (claim {claim:.4g})")

        verdict = "CLAIM REFUTED: " if self.refutes_claim else ""
        return (
            f"{verdict}epsilon >= {beside_claim(self.epsilon_lower, self.epsilon_claim)} at delta "
            f"= {self.delta:g}, mu >= {beside_claim(self.mu_lower, self.mu_claim)}, with "
            f"confidence {self.confidence:g} from {self.n_runs} runs on each data set"
        )


def audit_samples(
    one: ArrayLike,
    other: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    threshold: float | None = None,
    epsilon_claim: float | None = None,
    mu_claim: float | None = None,
) -> AuditResult:
    """Bound epsilon and mu from below by samples of a statistic on neighbouring data sets.

    Parameters
    ----------
    one, other : array-like of shape (n_runs,)
        Independent values of the statistic, finite or not, on the data and on its neighbour.
    delta : float, default=0.0
        Delta at which epsilon is bounded, in [0, 1).
    confidence : float, default=0.95
        Probability with which both bounds hold, in (0, 1).
    threshold : float, optional
        Fixed before any run: the neighbour exceeds it more often. By default half of the runs
        chooses thresholds and the sign of the statistic, and only the others are counted.
    epsilon_claim, mu_claim : float, optional
        Promise of the mechanism, for the result to compare.

    Returns
    -------
    AuditResult
        Lower bounds on epsilon and mu; 0 where the runs show no difference.

    Raises
    ------
    ValueError
        If samples are not vectors without NaN, or too few, or a parameter is outside its range.

    Notes
    -----
    Rates are bounded by Clopper & Pearson (1934). n runs cannot show an epsilon of more than
    about ``log(n / log(4 / (1 - confidence)))``, nor a delta far below ``1 / n``: for Gaussian
    noise look at mu.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.standard_normal((2, 100_000))
    >>> result = audit_samples(noise[0], noise[1] + 1, delta=1e-6, mu_claim=1.0)
    >>> 0.95 < result.mu_lower < 1.0
    True
    """
    x, y = _checked("one", one), _checked("other", other)
    _check_rate("delta", delta, may_be_zero=True)
    _check_rate("confidence", confidence)
    if threshold is not None:
        events, error = [(1, float(threshold))], (1 - confidence) / 2
    else:
        if min(x.size, y.size) < 2:
            raise ValueError(
                "one and other must hold two values or more each: some choose, some count."
            )
        error = (1 - confidence) / 4  # for each of two rates of two events
        m, n = x.size // 2, y.size // 2
        events = _choose(x[:m], y[:n], delta, error)
        x, y = x[m:], y[n:]
    bounds = [_bounds(sign * x, sign * y, np.array([at]), delta, error) for sign, at in events]
    hit_rates, false_hit_rates, epsilon, mu = np.concatenate(bounds, axis=1)
    best = int(epsilon.argmax())
    _, threshold = events[best]
    return AuditResult(
        # The best pair of rates for each parameter: all bounds hold together.
        epsilon_lower=float(epsilon.max()), mu_lower=float(mu.max()), delta=delta,
        confidence=confidence, threshold=threshold, true_positive_rate=float(hit_rates[best]),
        false_positive_rate=float(false_hit_rates[best]), n_runs=min(x.size, y.size),
        epsilon_claim=epsilon_claim, mu_claim=mu_claim,
    )  # fmt: skip


def _checked(name: str, samples: ArrayLike) -> Floats:
    """Validate samples as a one-dimensional float array without NaN."""
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or np.isnan(values).any():
        raise ValueError(
            f"{name} must be a one-dimensional array of numbers without NaN, got an array of "
            f"shape {values.shape}."
        )
    return values


def _check_rate(name: str, value: float, may_be_zero: bool = False) -> None:
    """Raise ValueError unless `value` lies in (0, 1), or is 0 where it may be."""
    if not (0 < value < 1 or (may_be_zero and value == 0)):
        raise ValueError(f"{name} must lie in {'[' if may_be_zero else '('}0, 1), got {value!r}.")


def _bounds(
    data: Floats, neighbour: Floats, thresholds: Floats, delta: float, error: float
) -> Floats:
    """Array (4, n_thresholds): rates of exceeding on the neighbour and the data, then lower bounds
    on epsilon and on mu.
    """
    false_hits, hits = (
        (part.size - np.searchsorted(np.sort(part), thresholds, side="right")).astype(np.float64)
        for part in (data, neighbour)
    )
    most_false = _upper(false_hits, data.size, error)
    least_true = _lower(hits, neighbour.size, error)
    with np.errstate(divide="ignore"):
        # true <= e^epsilon false + delta, and 1 - false <= e^epsilon (1 - true) + delta.
        by_event = np.log(np.maximum(least_true - delta, 0)) - np.log(most_false)
        by_complement = np.log(np.maximum(1 - most_false - delta, 0)) - np.log1p(-least_true)
        epsilon = np.maximum(np.maximum(by_event, by_complement), 0.0)
        # true <= Phi(Phi^-1(false) + mu).
        mu = np.maximum(ndtri(least_true) - ndtri(most_false), 0.0)
    return np.array([hits / neighbour.size, false_hits / data.size, epsilon, mu])


def _lower(successes: Floats, n: int, error: float) -> Floats:
    """Clopper-Pearson lower bound on a rate: false with probability `error` at most."""
    bound = beta.ppf(error, np.maximum(successes, 1), n - successes + 1)
    return np.where(successes == 0, 0.0, bound)


def _upper(successes: Floats, n: int, error: float) -> Floats:
    """Clopper-Pearson upper bound on a rate: false with probability `error` at most."""
    bound = beta.isf(error, successes + 1, np.maximum(n - successes, 1))
    return np.where(successes == n, 1.0, bound)


def _choose(data: Floats, neighbour: Floats, delta: float, error: float) -> list[tuple[int, float]]:
    """Events, as (sign of the statistic, threshold), with the best bound on epsilon and on mu."""
    events: list[tuple[int, float]] = []
    bounds = []  # on epsilon and on mu, by each event
    for sign in (1, -1):
        x, y = sign * data, sign * neighbour
        thresholds = _candidates(np.concatenate([x, y]))
        events += [(sign, threshold) for threshold in thresholds.tolist()]
        bounds.append(_bounds(x, y, thresholds, delta, error)[2:])
    return [events[best] for best in np.concatenate(bounds, axis=1).argmax(axis=1)]


def _candidates(pooled: Floats) -> Floats:
    """Up to 600 thresholds between the pooled values, densest near both ends."""
    # Number of thresholds from each end of the pooled sample, and as many evenly between them.
    n_tried = 200
    values = np.unique(pooled)
    if values.size == 1:
        return values
    with np.errstate(invalid="ignore"):
        between = values[:-1] + (values[1:] - values[:-1]) / 2
    between = np.where(np.isfinite(between), between, values[:-1])
    last = between.size - 1
    ends = np.rint(np.geomspace(1, last + 1, n_tried)).astype(np.intp) - 1
    ranks = np.concatenate([ends, last - ends, np.linspace(0, last, n_tried).astype(np.intp)])
    return between[np.unique(ranks)]


def _claims(fitted: object, delta: float | None) -> dict[str, Any]:
    """Delta to audit at, by default the report's, and the claims on epsilon and mu."""
    report: PrivacyReport | None = getattr(fitted, "privacy_report_", None)
    if report is not None:
        mu = math.inf if math.isinf(report.epsilon) else report.mu
        delta = report.delta if delta is None else delta
        return {"delta": delta, "epsilon_claim": report.epsilon, "mu_claim": mu}
    if delta is None:
        raise ValueError(
            "delta must be given: the fitted estimator has no privacy_report_ to take it from."
        )
    return {"delta": delta}


def _fitted_clone(estimator: object, data: object) -> Any:
    """Fit a clone without accountant on `data`, or on its items if it is a tuple."""
    if OPENED.get()[-1] is not None:
        raise RuntimeError(
            "audits are not charged: leave the block of the BudgetAccountant, and audit on data "
            "that is public or made up."
        )
    fresh = clone(estimator)
    payers = [name for name in fresh.get_params() if name.split("__")[-1] == "accountant"]
    fresh.set_params(**dict.fromkeys(payers))
    with warnings.catch_warnings():
        # The thousand fits of an audit may have too little data: no warning each time.
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        return fresh.fit(*_arguments(data))


def audit(
    estimator: object,
    data: object,
    neighbour: object,
    *,
    statistic: Callable[[Any], float],
    n_runs: int = 1000,
    delta: float | None = None,
    confidence: float = 0.95,
    threshold: float | None = None,
) -> AuditResult:
    """Bound epsilon and mu of an estimator from below by telling fits on neighbours apart.

    Parameters
    ----------
    estimator : estimator
        Estimator or pipeline; clones of it without accountant are fitted.
    data, neighbour : array-like, or tuple of arguments of ``fit``
        Data sets that are neighbours in the sense of the claim, such as those of
        :func:`worst_case`. They must be public or made up: fits are not charged.
    statistic : callable
        ``fitted estimator -> float``, larger on one of the two data sets.
    n_runs : int, default=1000
        Number of fits on each data set, at least 8.
    delta : float, optional
        Delta at which epsilon is bounded; by default that of the report.
    confidence, threshold : float, default=0.95 and None
        As for :func:`audit_samples`.

    Returns
    -------
    AuditResult
        The bounds beside what ``privacy_report_`` claims, if there is one.

    Raises
    ------
    ValueError, RuntimeError
        If a parameter is outside its range, or there is no delta; inside a ``with
        BudgetAccountant(...)`` block.

    Notes
    -----
    Noise is real unless the audit runs inside :func:`~sktensor_dp.unsafe_seeded_noise`.
    A fit shows less than its releases, so bounds are lower than the claim, often by much.
    :func:`audit_samples` audits a release itself. The method is that of Jagielski, Ullman &
    Oprea (2020) and, for mu, Nasr et al. (2023).

    Examples
    --------
    >>> from sktensor_dp import PrivateCPCompletion
    >>> model = PrivateCPCompletion(1, bounds=(0, 1), shape=(1, 1), epsilon=1.0, delta=0)
    >>> case = worst_case(model)
    >>> audit(model, case.data, case.neighbour, n_runs=50, statistic=case.statistic).epsilon_claim
    1.0
    """
    if not (isinstance(n_runs, numbers.Integral) and n_runs >= 8):
        raise ValueError(f"n_runs must be an int >= 8, got {n_runs!r}.")
    values: list[list[float]] = [[], []]
    for _ in range(n_runs):
        for side, part in enumerate((data, neighbour)):
            fitted = _fitted_clone(estimator, part)
            values[side].append(statistic(fitted))
    claims = _claims(fitted, delta)
    return audit_samples(*values, confidence=confidence, threshold=threshold, **claims)


@dataclass(frozen=True, eq=False)
class WorstCase:
    """Two neighbouring data sets and the statistic that tells fits on them apart.

    Attributes
    ----------
    data, neighbour, statistic : tuple, tuple and callable
        Arguments of ``fit``, and ``fitted estimator -> float``, larger on the neighbour.
    """

    data: tuple[object, ...]
    neighbour: tuple[object, ...]
    statistic: Callable[[Any], float]


def worst_case(estimator: object, n_units: int | None = None) -> WorstCase:
    """Neighbours that are as far apart as an estimator's releases allow.

    Parameters
    ----------
    estimator : estimator
        One of this package, or another with ``_public_facts``; it is not fitted.
    n_units : int, optional
        Number of documents or samples in the data sets, 1000 by default. A completion whose
        unit is one entry has one; with ``unit_mode``, ``shape`` sets the number of persons.

    Returns
    -------
    WorstCase
        The data sets and the statistic, to be passed to :func:`audit`.

    Raises
    ------
    ValueError
        If the estimator has no such hook, or its parameters leave data sets undetermined.

    Notes
    -----
    One document of one of two words, or sets of words, takes the other; one sample at ``data_norm``
    turns round; one entry goes from bound to bound; one person rates two rows as far apart as
    they may. With ``neighbours="add_remove"`` that unit leaves. The fewer components, iterations
    and refinements, the more reaches the fitted attributes.

    Examples
    --------
    >>> from sktensor_dp import PrivateTensorPowerMethod
    >>> case = worst_case(PrivateTensorPowerMethod(1, data_norm=2.0), n_units=3)
    >>> case.neighbour[0][:, 0]
    array([ 2.,  2., -2.])
    """
    facts = getattr(estimator, "_public_facts", None)
    neighbours = None if facts is None else facts().worst_case
    if neighbours is None:
        raise ValueError(
            "estimator must tell its worst neighbours, as worst_case in _public_facts of "
            f"PrivateEstimatorMixin; got a {type(estimator).__name__}, which does not."
        )
    return WorstCase(*neighbours(n_units))


@dataclass(frozen=True, kw_only=True)
class OneRunResult(_Bounds):
    """Lower bounds on epsilon and mu from one fit on many canaries.

    Attributes
    ----------
    epsilon_lower, mu_lower : float
        Lower bounds on epsilon and on mu of Gaussian differential privacy; both hold together.
    delta, confidence : float
        Delta at which epsilon is bounded, and the probability with which both bounds hold.
    epsilon_claim, mu_claim : float or None
        What the report claims; None without a report, and for mu where it claims none.
    n_canaries, n_guesses, n_correct : int
        Number of slots, of guesses about them, and of right guesses.
    """

    n_canaries: int
    n_guesses: int
    n_correct: int


def p_value_of_guesses(
    n_canaries: int, n_guesses: int, n_correct: int, epsilon: ArrayLike, delta: float
) -> Any:
    """Upper bound on the probability of `n_correct` right guesses at (epsilon, delta)-DP."""
    # docs/proofs/audits.md. A guess is right with probability e^epsilon / (1 + e^epsilon) at most.
    right = expit(np.asarray(epsilon, dtype=np.float64))
    chance = binom.sf(n_correct - 1, n_guesses, right)
    return np.minimum(chance + n_canaries * delta * (1 - right), 1.0)


def one_run_audit(
    guesses: ArrayLike,
    included: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    epsilon_claim: float | None = None,
    mu_claim: float | None = None,
) -> OneRunResult:
    """Bound epsilon and mu from below by guesses about which slots hold canaries.

    Parameters
    ----------
    guesses : array-like of shape (n_canaries,)
        1 for a canary, -1 for something harmless, 0 for no guess, from the mechanism's output.
        How many are not 0 is fixed before the output is seen.
    included : array-like of bool of shape (n_canaries,)
        True where the slot held a canary, drawn by fair and independent coins.
    delta, confidence, epsilon_claim, mu_claim
        As for :func:`audit_samples`.

    Returns
    -------
    OneRunResult
        The bounds; 0 where guesses are no better than chance allows.

    Raises
    ------
    ValueError
        If the arrays differ in shape, or a guess or parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.random(10_000) < 0.5
    >>> lies = rng.random(10_000) > np.exp(2) / (1 + np.exp(2))
    >>> result = one_run_audit(np.where(coins ^ lies, 1, -1), coins)
    >>> 1.85 < result.epsilon_lower < 2
    True
    """
    signs, coins = np.asarray(guesses), np.asarray(included)
    if signs.ndim != 1 or signs.shape != coins.shape or coins.dtype != bool or signs.size == 0:
        raise ValueError(
            "guesses and included must be arrays of one shape (n_canaries,), included of "
            f"booleans, got shapes {signs.shape} and {coins.shape} and type {coins.dtype}."
        )
    if not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError("guesses must be -1, 0 or 1.")
    _check_rate("delta", delta, may_be_zero=True)
    _check_rate("confidence", confidence)
    is_guess = signs != 0
    n_canaries, n_guesses = signs.size, int(is_guess.sum())
    n_correct = int((is_guess & ((signs > 0) == coins)).sum())
    error = (1 - confidence) / 2  # for each of both bounds
    p_values = p_value_of_guesses(n_canaries, n_guesses, n_correct, TRIED, delta)
    rejected = np.flatnonzero(p_values < error)
    return OneRunResult(
        epsilon_lower=float(TRIED[rejected[-1]]) if rejected.size else 0.0,
        mu_lower=_gaussian_bound(n_canaries, n_guesses, n_correct, error),
        delta=delta, confidence=confidence, epsilon_claim=epsilon_claim, mu_claim=mu_claim,
        n_canaries=n_canaries, n_guesses=n_guesses, n_correct=n_correct,
    )  # fmt: skip


def _gaussian_bound(n_canaries: int, n_guesses: int, n_correct: int, error: float) -> float:
    """Largest mu at which this many right guesses have a probability below `error`."""
    # docs/proofs/audits.md: T_0 > 1 rejects mu, where T_0 = (R_0 + W_0) m / r of m canaries and
    # r guesses follows from R_c = c / m * error and W_c = (r - c) / m * error by
    # W_{j-1} = max(W_j, Phi(Phi^-1(R_j) - mu)) for j = c, ..., 1. Where W_j is g more than
    # W_{j+1}, R_j is j / (r - j) * g more than R_{j+1}.

    def excess(mu: float) -> float:
        right = error * n_correct / n_canaries  # R_c, then R_j
        wrong = error * (n_guesses - n_correct) / n_canaries  # W_c, then W_j
        for j in range(n_correct - 1, -1, -1):
            more = max(float(ndtr(ndtri(min(right, 1.0)) - mu)) - wrong, 0.0)
            right, wrong = right + j / (n_guesses - j) * more, wrong + more
        # Do not reject because of a rounding error.
        return (right + wrong) * n_canaries / n_guesses - 1 - 1e-9

    if n_correct == 0 or excess(0.0) <= 0:
        return 0.0
    # Less than the root by more than its error.
    return max(float(brentq(excess, 0.0, TRIED[-1], xtol=1e-9)) - 2e-9, 0.0)


def guesses_from_scores(scores: ArrayLike, n_guesses: int | None = None) -> NDArray[np.int_]:
    """Guess a canary where scores are highest, and a harmless unit where they are lowest.

    Parameters
    ----------
    scores : array-like of shape (n_canaries,)
        Scores of the slots, larger where a canary is more likely.
    n_guesses : int, optional
        Number of guesses, half of either kind; by default one for every slot.

    Returns
    -------
    ndarray of shape (n_canaries,)
        Guesses -1, 0 and 1.

    Raises
    ------
    ValueError
        If scores are not one-dimensional or hold NaN, or `n_guesses` is not between 1
        and the number of scores.

    Examples
    --------
    >>> guesses_from_scores([0.3, 0.1, 0.8, 0.5], n_guesses=2)
    array([ 0, -1,  1,  0])
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise ValueError(f"scores must be a vector without NaN, got shape {values.shape}.")
    number = values.size if n_guesses is None else n_guesses
    if not (isinstance(number, numbers.Integral) and 1 <= number <= values.size):
        raise ValueError(f"n_guesses must be an int from 1 to {values.size}, got {n_guesses!r}.")
    order = np.argsort(values, kind="stable")
    guesses = np.zeros(values.size, dtype=np.int_)
    guesses[order[: number // 2]] = -1
    guesses[order[values.size - (number - number // 2) :]] = 1
    return guesses


def audit_in_one_run(
    estimator: object,
    canaries: object,
    harmless: object,
    *,
    score: Callable[[Any], ArrayLike],
    rest: object = None,
    n_guesses: int | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
) -> OneRunResult:
    """Bound epsilon and mu of an estimator from below by one fit on many canaries.

    Parameters
    ----------
    estimator : estimator
        Estimator; one clone of it without accountant is fitted.
    canaries, harmless : array-like or sparse matrix of n_canaries rows, or tuple of such
        Slot i holds row i of `canaries` or of `harmless`, by a fair coin. Tuples hold the
        arguments of ``fit``. They must be public or made up: fits are not charged. The
        estimator's claim must be about replacing one row.
    score : callable
        ``fitted estimator -> array of shape (n_canaries,)``, larger for likelier canaries.
    rest : like `canaries`, optional
        Rows that are always there, after those of the slots.
    n_guesses : int, optional
        As for :func:`guesses_from_scores`. With Gaussian noise fewer guesses, where scores
        are extreme, give a larger bound.
    delta, confidence : float, default=None and 0.95
        As for :func:`audit`.

    Returns
    -------
    OneRunResult
        The bounds, beside the claims of the report.

    Raises
    ------
    ValueError, RuntimeError
        As :func:`audit`, or if scores are not a vector without NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateCPCompletion
    >>> X = np.argwhere(np.ones((20, 20)))
    >>> high, low = np.ones(400), np.zeros(400)
    >>> model = PrivateCPCompletion(1, bounds=(0, 1), epsilon=2.0, delta=0)
    >>> result = audit_in_one_run(model, (X, high), (X, low), score=lambda m: m.predict(X))
    >>> result.n_canaries, result.epsilon_claim
    (400, 2.0)
    """
    pairs = list(zip(_arguments(canaries), _arguments(harmless), strict=True))
    n_slots = _num_samples(_arguments(canaries)[0])
    coins = NoiseSource().integers(2, n_slots).astype(bool)
    # Slot i takes row i of the canaries, or of the harmless rows that are stacked below them.
    rows = np.arange(n_slots) + np.where(coins, 0, n_slots)
    data = [_safe_indexing(_stacked(*pair), rows) for pair in pairs]
    if rest is not None:
        data = [_stacked(*pair) for pair in zip(data, _arguments(rest), strict=True)]
    fitted = _fitted_clone(estimator, tuple(data))
    guesses = guesses_from_scores(score(fitted), n_guesses)
    return one_run_audit(guesses, coins, confidence=confidence, **_claims(fitted, delta))


def _arguments(data: object) -> tuple[Any, ...]:
    """Arguments of ``fit``: those in a tuple, or the one that is given."""
    return data if isinstance(data, tuple) else (data,)


def _stacked(above: Any, below: Any) -> Any:
    """Rows of `above` followed by the rows of `below`."""
    if sp.issparse(above):
        return sp.vstack([above, below], format="csr")
    if isinstance(above, list):
        return [*above, *below]
    return np.concatenate([np.asarray(above), np.asarray(below)])
