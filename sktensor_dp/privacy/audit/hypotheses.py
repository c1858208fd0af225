r"""Lower bounds on epsilon and mu from samples of two hypotheses.

Let P be the law of a number computed from what a mechanism shows on one data set and Q
its law on a neighbour. For every event E, (epsilon, delta)-differential privacy says

    Q(E) <= exp(epsilon) P(E) + delta,    1 - P(E) <= exp(epsilon) (1 - Q(E)) + delta,

the second being the first for the complement of E with the data sets exchanged, and
mu-Gaussian differential privacy says ``Phi^-1(Q(E)) - Phi^-1(P(E)) <= mu`` (Dong, Roth &
Su, 2022, definition 2.6 and equation 5). With Q(E) >= q and P(E) <= p, each of the three
turns into a lower bound, increasing in q and decreasing in p, so that one pair (q, p)
serves all three at once. Clopper and Pearson's one-sided bounds give such pairs.

An event chosen on the runs that are counted would be chosen for its luck. Events are
chosen on a part of the runs, and counted on the rest, of which they are independent:
given the event, its counts are binomial. Two are chosen, the best for epsilon and the
best for mu; each of four bounds fails with a probability of at most a quarter of
``1 - confidence``, hence all of them hold with at least the stated confidence. An event
known in advance needs two bounds, and all runs are counted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import beta

Floats = NDArray[np.float64]

# Thresholds that are tried, from each end of the pooled sample and evenly between them.
N_TRIED = 200


@dataclass(frozen=True)
class AuditResult:
    """Lower bounds on the privacy parameters of a mechanism.

    Attributes
    ----------
    epsilon_lower : float
        No mechanism that is (epsilon, delta)-DP with a smaller epsilon tells the data
        sets apart this well, but with probability ``1 - confidence``.
    mu_lower : float
        The same for mu-Gaussian differential privacy. Both bounds hold together.
    delta : float
        At which epsilon is bounded.
    confidence : float
        Probability with which both bounds hold.
    threshold : float
        The event behind `epsilon_lower` is that a statistic exceeds it (negated
        statistic and threshold, if the statistic falls).
    true_positive_rate, false_positive_rate : float
        How often the event was seen on the neighbour and on the data.
    n_runs : int
        Runs counted on each data set; those that chose the event are not among them.
    epsilon_claim, mu_claim : float or None
        What the mechanism promises; None where that is not known, and for mu where the
        promise has none.

    Examples
    --------
    >>> AuditResult(1.2, 0.9, 1e-6, 0.95, 0.5, 0.8, 0.2, 500, epsilon_claim=1.0).refutes_claim
    True
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
        """Whether a bound exceeds its claim: the claim is false, with this confidence."""
        pairs = ((self.epsilon_lower, self.epsilon_claim), (self.mu_lower, self.mu_claim))
        return any(claim is not None and lower > claim for lower, claim in pairs)

    def __str__(self) -> str:
        def of(lower: float, claim: float | None) -> str:
            return f"{lower:.4g}" + ("" if claim is None else f" (claim {claim:.4g})")

        verdict = "CLAIM REFUTED: " if self.refutes_claim else ""
        return (
            f"{verdict}epsilon >= {of(self.epsilon_lower, self.epsilon_claim)} at delta = "
            f"{self.delta:g}, mu >= {of(self.mu_lower, self.mu_claim)}, with confidence "
            f"{self.confidence:g} from {self.n_runs} runs on each data set"
        )


def audit_samples(
    one: ArrayLike,
    other: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    threshold: float | None = None,
    selection: float = 0.5,
    epsilon_claim: float | None = None,
    mu_claim: float | None = None,
) -> AuditResult:
    """Bound epsilon and mu from below by samples of a statistic on neighbouring data sets.

    Parameters
    ----------
    one, other : array-like of shape (n_runs,)
        Independent values of the statistic, on the data and on its neighbour; both sets
        may have sizes of their own. Infinite values are allowed.
    delta : float, default=0.0
        At which epsilon is bounded, in [0, 1).
    confidence : float, default=0.95
        Probability with which both bounds hold, in (0, 1).
    threshold : float, optional
        Tells the data sets apart where it was fixed before any run: the statistic is
        meant to be larger on the neighbour. All runs count then. By default a part of
        the runs chooses thresholds, and which way the statistic moves.
    selection : float, default=0.5
        Share of the runs that choose, in (0, 1).
    epsilon_claim, mu_claim : float, optional
        What the mechanism promises, for the result to compare.

    Returns
    -------
    AuditResult
        The bounds; 0 where nothing was found.

    Raises
    ------
    ValueError
        If samples are not one-dimensional, hold NaN or are too few, or a parameter is
        outside its range.

    Notes
    -----
    Clopper & Pearson (1934) bound the two rates of an event. An epsilon of more than about
    ``log(n / log(4 / (1 - confidence)))`` cannot be shown by n runs, however much is given
    away, and a delta far below ``1 / n`` makes a mechanism look as if it were private
    without it: for a Gaussian mechanism mu is the sharper question.

    Examples
    --------
    The Gaussian mechanism with noise as large as its sensitivity is 1-GDP.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.standard_normal((2, 100_000))
    >>> result = audit_samples(noise[0], noise[1] + 1, delta=1e-6, mu_claim=1.0)
    >>> 0.95 < result.mu_lower < 1.0
    True
    """
    x, y = _checked("one", one), _checked("other", other)
    check_rate("delta", delta, least=True)
    check_rate("confidence", confidence)
    x, y, events, error = _events(x, y, threshold, selection, delta, 1 - confidence)
    parts = [_bounds(sign * x, sign * y, np.array([level]), delta, error) for sign, level in events]
    hits, false_hits, epsilon, mu = np.concatenate(parts, axis=1)
    best = int(epsilon.argmax())
    return AuditResult(
        # Each pair of rates bounds both parameters.
        epsilon_lower=float(epsilon.max()),
        mu_lower=float(mu.max()),
        delta=delta,
        confidence=confidence,
        threshold=events[best][1],
        true_positive_rate=float(hits[best]),
        false_positive_rate=float(false_hits[best]),
        n_runs=min(x.size, y.size),
        epsilon_claim=epsilon_claim,
        mu_claim=mu_claim,
    )


def _events(
    x: Floats, y: Floats, threshold: float | None, selection: float, delta: float, error: float
) -> tuple[Floats, Floats, list[tuple[int, float]], float]:
    """Samples that count, events as signs and thresholds, and how often each rate may be wrong."""
    if threshold is not None:
        return x, y, [(1, float(threshold))], error / 2
    check_rate("selection", selection)
    if min(x.size, y.size) < 2:
        raise ValueError(
            "one and other must hold two values or more each: some choose, some count."
        )
    m, n = (min(max(1, int(selection * part.size)), part.size - 1) for part in (x, y))
    return x[m:], y[n:], _choose(x[:m], y[:n], delta, error / 4), error / 4


def _checked(name: str, part: ArrayLike) -> Floats:
    values = np.asarray(part, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or np.isnan(values).any():
        raise ValueError(
            f"{name} must be a one-dimensional array of numbers without NaN, got an array of "
            f"shape {values.shape}."
        )
    return values


def check_rate(name: str, value: float, least: bool = False) -> None:
    """Refuse a number that is not between 0 and 1; with `least` it may be 0."""
    if not (0 <= value < 1 if least else 0 < value < 1):
        raise ValueError(f"{name} must lie in {'[' if least else '('}0, 1), got {value!r}.")


def _bounds(one: Floats, other: Floats, thresholds: Floats, delta: float, error: float) -> Floats:
    """Rates of the events that a statistic exceeds each threshold, and what they bound."""
    # In rows: the rates under the other and under the one, epsilon, and mu.
    below, above = (_exceeding(part, thresholds) for part in (one, other))
    most, least = _upper(below, one.size, error), _lower(above, other.size, error)
    with np.errstate(divide="ignore"):
        gains = [np.log(np.maximum(least - delta, 0)) - np.log(most)]
        gains.append(np.log(np.maximum(1 - most - delta, 0)) - np.log1p(-least))
        bounds = np.maximum([np.max(gains, axis=0), ndtri(least) - ndtri(most)], 0.0)
    return np.array([above / other.size, below / one.size, *bounds])


def _exceeding(values: Floats, thresholds: Floats) -> Floats:
    ordered = np.sort(values)
    return (ordered.size - np.searchsorted(ordered, thresholds, side="right")).astype(np.float64)


def _lower(successes: Floats, n: int, error: float) -> Floats:
    """Clopper-Pearson: below it lies the true rate with probability `error` at most."""
    bound = beta.ppf(error, np.maximum(successes, 1), n - successes + 1)
    return np.where(successes == 0, 0.0, bound)


def _upper(successes: Floats, n: int, error: float) -> Floats:
    bound = beta.isf(error, successes + 1, np.maximum(n - successes, 1))
    return np.where(successes == n, 1.0, bound)


def _choose(one: Floats, other: Floats, delta: float, error: float) -> list[tuple[int, float]]:
    """Sign of the statistic and threshold that bound epsilon best, and mu best."""
    best: dict[str, tuple[float, int, float]] = {}
    for sign in (1, -1):
        x, y = sign * one, sign * other
        thresholds = _candidates(np.concatenate([x, y]))
        _, _, epsilon, mu = _bounds(x, y, thresholds, delta, error)
        for name, found in (("epsilon", epsilon), ("mu", mu)):
            place = int(found.argmax())
            if name not in best or found[place] > best[name][0]:
                best[name] = (float(found[place]), sign, float(thresholds[place]))
    return [best[name][1:] for name in ("epsilon", "mu")]


def _candidates(pooled: Floats) -> Floats:
    """Thresholds between values, dense near both ends, where epsilon shows."""
    values = np.unique(pooled)
    if values.size == 1:
        return values
    with np.errstate(invalid="ignore"):
        between = values[:-1] + (values[1:] - values[:-1]) / 2
    between = np.where(np.isfinite(between), between, values[:-1])
    last = between.size - 1
    ends = np.rint(np.geomspace(1, last + 1, N_TRIED)).astype(np.intp) - 1
    ranks = np.concatenate([ends, last - ends, np.linspace(0, last, N_TRIED).astype(np.intp)])
    return between[np.unique(ranks)]
