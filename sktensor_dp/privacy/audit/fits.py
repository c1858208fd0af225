"""Audit of an estimator by fitting it many times on two neighbouring data sets."""

import math
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.privacy.accountant import OPENED
from sktensor_dp.privacy.audit.hypotheses import AuditResult, audit_samples
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.report import PrivacyReport

Floats = NDArray[np.float64]
Statistic = Callable[[Any], float]

# Share of the runs on which the default statistic is learnt.
LEARNING = 0.25
# Relative variance below which an attribute counts as constant.
NEARLY_ZERO = 1e-9


@dataclass(frozen=True)
class Guarantee:
    """What the report of a fit promises.

    Attributes
    ----------
    epsilon, mu, delta : float or None
        None where there is no report; no mu where not all releases are Gaussian.
    """

    epsilon: float | None = None
    mu: float | None = None
    delta: float | None = None

    @classmethod
    def of(cls, fitted: Any) -> "Guarantee":
        """Read it off a fitted estimator."""
        report: PrivacyReport | None = getattr(fitted, "privacy_report_", None)
        if report is None:
            return cls()
        gaussian = all(row.epsilon == 0 and row.delta == 0 for row in report.rows)
        mu = None
        if math.isinf(report.epsilon):
            mu = math.inf
        elif gaussian and report.delta > 0 and report.epsilon > 0:
            mu = gaussian_mu(report.epsilon, report.delta)
        return cls(report.epsilon, mu, report.delta)

    def delta_or(self, given: float | None) -> float:
        """Return the delta to audit at."""
        delta = self.delta if given is None else given
        if delta is None:
            raise ValueError(
                "delta must be given: the fitted estimator has no privacy_report_ to take it from."
            )
        return delta


def fitted_clone(estimator: Any, data: Any) -> Any:
    """Fit a clone that charges nobody; a tuple is unpacked into the arguments of ``fit``."""
    if OPENED.get()[-1] is not None:
        raise RuntimeError(
            "audits are not charged: leave the block of the BudgetAccountant, and audit on data "
            "that is public or made up."
        )
    fresh = clone(estimator)
    payers = [name for name in fresh.get_params() if name.split("__")[-1] == "accountant"]
    fresh.set_params(**dict.fromkeys(payers))
    with warnings.catch_warnings():
        # What an audit's data are good for beside it is no concern, a thousand times over.
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        return fresh.fit(*data) if isinstance(data, tuple) else fresh.fit(data)


def audit(
    estimator: Any,
    data: Any,
    neighbour: Any,
    *,
    n_runs: int = 1000,
    statistic: Statistic | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
    threshold: float | None = None,
) -> AuditResult:
    """Bound epsilon and mu of an estimator from below by telling fits on neighbours apart.

    Parameters
    ----------
    estimator : estimator
        Fits clones, without accountant; a pipeline will do.
    data, neighbour : array-like, or tuple of arguments of ``fit``
        Two neighbouring data sets, such as those of :func:`worst_case`. Public or made
        up: fits are not charged, and the result is computed from the data. That they are
        neighbours in the sense of the claim is up to the caller.
    n_runs : int, default=1000
        Fits on each of the two.
    statistic : callable, optional
        ``fitted estimator -> float``, to be larger on one of the two. By default all
        public numeric attributes are weighted by a linear discriminant, learnt on a
        quarter of the runs, which then count no more; their shape must be the same at
        every fit.
    delta : float, optional
        At which epsilon is bounded; by default that of the report.
    confidence : float, default=0.95
        Probability with which both bounds hold.
    threshold : float, optional
        As for :func:`audit_samples`; not with the default statistic.

    Returns
    -------
    AuditResult
        The bounds beside what ``privacy_report_`` claims, if there is one.

    Raises
    ------
    ValueError
        If a parameter is outside its range, there is no delta, or attributes change
        their shape and no statistic is given.
    RuntimeError
        Inside a ``with BudgetAccountant(...)`` block.

    Notes
    -----
    Noise is real unless the audit runs inside :func:`~sktensor_dp.unsafe_seeded_noise`.
    A fit shows less than its releases: what follows them hides a part. Bounds are
    therefore lower than the claim, often by much; see ``docs/audit.md`` for those of
    every estimator, and :func:`audit_samples` for auditing a release itself.

    The method is that of Jagielski, Ullman & Oprea (2020) and, for mu, Nasr et al. (2023).

    Examples
    --------
    >>> from sktensor_dp import PrivateCPCompletion
    >>> from sktensor_dp.privacy.audit import audit, worst_case
    >>> model = PrivateCPCompletion(1, bounds=(0, 1), shape=(1, 1), epsilon=1.0, delta=0)
    >>> case = worst_case(model)
    >>> result = audit(model, case.data, case.neighbour, n_runs=50, statistic=case.statistic)
    >>> result.epsilon_claim
    1.0
    """
    if not (isinstance(n_runs, numbers.Integral) and n_runs >= 8):
        raise ValueError(f"n_runs must be an int >= 8, got {n_runs!r}.")
    if statistic is None and threshold is not None:
        raise ValueError("threshold needs a statistic: the default one is learnt from the runs.")
    numbers_of = _public_numbers if statistic is None else statistic
    values: list[list[Any]] = [[], []]
    claim: Guarantee | None = None
    for _ in range(n_runs):
        for side, part in enumerate((data, neighbour)):
            fitted = fitted_clone(estimator, part)
            claim = claim or Guarantee.of(fitted)
            values[side].append(numbers_of(fitted))
    claim = claim or Guarantee()
    one, other = values
    if statistic is None:
        one, other = _discriminated(one, other)
    return audit_samples(
        np.asarray(one, dtype=np.float64),
        np.asarray(other, dtype=np.float64),
        delta=claim.delta_or(delta),
        confidence=confidence,
        threshold=threshold,
        epsilon_claim=claim.epsilon,
        mu_claim=claim.mu,
    )


def _public_numbers(fitted: Any) -> Floats:
    """All public fitted attributes that are numbers, in one vector."""
    parts: list[Floats] = []

    def collect(item: Any) -> None:
        if isinstance(item, list | tuple):
            for inner in item:
                collect(inner)
        elif isinstance(item, dict):
            collect([item[key] for key in sorted(item, key=str)])
        elif isinstance(item, numbers.Real | np.ndarray):
            array = np.asarray(item)
            if array.dtype.kind in "biuf":
                parts.append(array.ravel().astype(np.float64))

    for name, item in sorted(vars(fitted).items()):
        if name.endswith("_") and not name.startswith("_"):
            collect(item)
    return np.nan_to_num(np.concatenate([np.zeros(1), *parts]))


def _discriminated(one: list[Floats], other: list[Floats]) -> tuple[Floats, Floats]:
    """Runs that did not learn the discriminant, seen along it."""
    if len({vector.shape for vector in (*one, *other)}) > 1:
        raise ValueError(
            "statistic must be given: fitted attributes change their shape from fit to fit."
        )
    cut = max(2, int(LEARNING * len(one)))
    vectors = [np.array(part) for part in (one, other)]
    means = [part[:cut].mean(axis=0) for part in vectors]
    variance = sum(part[:cut].var(axis=0) for part in vectors)
    scale = np.square(np.abs(np.concatenate(vectors)[:cut]).max(axis=0))
    weights = (means[1] - means[0]) / np.maximum(variance, NEARLY_ZERO * scale + 1e-300)
    return vectors[0][cut:] @ weights, vectors[1][cut:] @ weights
