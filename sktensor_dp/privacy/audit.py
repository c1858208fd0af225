"""Empirical lower bounds on what a fit gives away; ``docs/proofs/audits.md`` has the proofs."""

import math
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import beta
from sklearn.base import clone

from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.privacy.accountant import OPENED
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.tensor.arrays import Floats

__all__ = ["AuditResult", "WorstCase", "audit", "audit_samples", "worst_case"]


@dataclass(frozen=True, kw_only=True)
class AuditResult:
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
        The event behind `epsilon_lower` is that the statistic exceeds it; where the statistic is
        smaller on the neighbour, that the negated statistic does.
    true_positive_rate, false_positive_rate : float
        Rates of the event on the neighbour and on the data.
    n_runs : int
        Runs counted on each data set; those that chose the event are not among them.
    """

    epsilon_lower: float
    mu_lower: float
    delta: float
    confidence: float
    threshold: float
    true_positive_rate: float
    false_positive_rate: float
    n_runs: int
    epsilon_claim: float | None = None
    mu_claim: float | None = None

    @property
    def refutes_claim(self) -> bool:
        """True if a bound exceeds its claim: the claim is false, with this confidence."""
        pairs = ((self.epsilon_lower, self.epsilon_claim), (self.mu_lower, self.mu_claim))
        return any(claim is not None and lower > claim for lower, claim in pairs)

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
    Rates are bounded by Clopper & Pearson (1934). n counted runs cannot show an epsilon of more
    than about ``log(n / log(4 / (1 - confidence)))``, nor a delta far below ``1 / n``: for Gaussian
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
    """Rates of exceeding thresholds, on neighbour and data, and bounds on epsilon and mu.

    The result has the shape (4, n_thresholds); bounds are from below.
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
    """Two events (sign of the statistic, threshold): of the best bound on epsilon, and on mu."""
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
        return fresh.fit(*(data if isinstance(data, tuple) else (data,)))


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
            claims = _claims(fitted, delta)
            values[side].append(statistic(fitted))
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
        If the estimator has no ``_public_facts``, or its parameters leave data sets undetermined.

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
