r"""Lower bounds on epsilon from one fit on many canaries.

Every slot i of m holds a canary (S_i = 1) or something harmless (S_i = -1), by fair
coins; the auditor sees the fit alone and guesses T_i in {-1, 0, 1}, 0 being no guess.

**Pure differential privacy.** Given what the fit shows and the coins before i, the odds
of the two values of S_i are at most e^epsilon, so the guess is right with a probability of
at most q = e^epsilon / (1 + e^epsilon). The number of right guesses among r is then
stochastically smaller than W ~ Binomial(r, q) (Steinke, Nasr & Jagielski, 2023, theorem
5.2), and randomised response attains that.

**Approximate.** Averaged over the coins after i, and given those before, the two laws of
what the fit shows are still (epsilon, delta)-indistinguishable. Let X_i be what the
probability of a right guess exceeds q by, given the fit and the coins before i, or 0. As
``q (P + P') = q P + (1 - q) e^epsilon P'``, the mean of X_i is at most

    sum over t in {-1, 1} of  1/2 int (P_t - q (P_t + P_-t))_+
        = (1 - q) / 2  sum_t int_{T_i = t} (P_t - e^epsilon P_-t)_+  <=  (1 - q) delta.

The chance of v right guesses, updated guess by guess with W in the place of those to
come, rises in mean by X_i times a probability of being decisive; so that

    P(v or more right) <= P(W >= v) + m (1 - q) delta.

Steinke, Nasr & Jagielski print ``2 m delta max_i P(v - i <= W < v) / i`` in the place of the
last term (appendix D). It is smaller for many canaries and larger for few, but fails where
few guesses are right: a linear programme over all mechanisms of two bits finds one that is
(2, 0.1)-private and gets one guess or more right with probability .9991, against .9915. It
is not used here; as long as m delta is well below ``1 - confidence`` little is lost.

An (epsilon, delta)-private mechanism is so for every larger epsilon as well: the bound is
the largest epsilon that is rejected. The chance of exceeding the truth is that of one
event, that the number of right guesses reaches the smallest of all critical numbers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom

from sktensor_dp.privacy.audit.fits import Guarantee, check_rate, fitted_clone
from sktensor_dp.privacy.noise import NoiseSource

Floats = NDArray[np.float64]

# Where the largest rejected epsilon is looked for; no number of canaries shows more.
TRIED = np.linspace(0.0, 30.0, 601)


@dataclass(frozen=True)
class OneRunResult:
    """A lower bound on epsilon from one fit.

    Attributes
    ----------
    epsilon_lower : float
        The bound.
    delta, confidence : float
        At which delta, and with which probability, it holds.
    n_canaries, n_guesses, n_correct : int
        Slots, guesses and right guesses.
    epsilon_claim : float or None
        What the report promises.
    """

    epsilon_lower: float
    delta: float
    confidence: float
    n_canaries: int
    n_guesses: int
    n_correct: int
    epsilon_claim: float | None = None

    @property
    def refutes_claim(self) -> bool:
        """Whether the bound exceeds the claim."""
        return self.epsilon_claim is not None and self.epsilon_lower > self.epsilon_claim


def one_run_p_value(
    n_canaries: int, n_guesses: int, n_correct: int, epsilon: float, delta: float
) -> float:
    """Bound the chance of so many right guesses about an (epsilon, delta)-DP mechanism.

    Parameters
    ----------
    n_canaries : int
        Slots with a fair coin each.
    n_guesses : int
        Guesses, at most so many.
    n_correct : int
        Right ones.
    epsilon, delta : float
        Of the mechanism.

    Returns
    -------
    float
        In [0, 1]; for delta = 0 exact for randomised response.

    Examples
    --------
    >>> round(one_run_p_value(100, 100, 60, 0.0, 0.0), 4)
    0.0284
    """
    return float(_p_values(n_canaries, n_guesses, n_correct, epsilon, delta))


def _p_values(
    n_canaries: int, n_guesses: int, n_correct: int, epsilon: ArrayLike, delta: float
) -> Floats:
    epsilons = np.asarray(epsilon, dtype=np.float64)
    chance = binom.sf(n_correct - 1, n_guesses, expit(epsilons))
    return np.minimum(chance + n_canaries * delta * expit(-epsilons), 1.0)


def one_run_audit(
    guesses: ArrayLike,
    included: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    epsilon_claim: float | None = None,
) -> OneRunResult:
    """Bound epsilon from below by guesses about coins.

    Parameters
    ----------
    guesses : array-like of shape (n_canaries,)
        1 for a canary, -1 for something harmless, 0 for no guess: a function of what the
        mechanism showed. How many are not 0 is fixed before.
    included : array-like of shape (n_canaries,)
        What the fair, independent coins said, as booleans.
    delta : float, default=0.0
        At which epsilon is bounded, in [0, 1).
    confidence : float, default=0.95
        Probability with which the bound holds, in (0, 1).
    epsilon_claim : float, optional
        What the mechanism promises.

    Returns
    -------
    OneRunResult
        The bound; 0 where guesses are no better than chance allows.

    Raises
    ------
    ValueError
        If the arrays differ in shape, guesses are others, or a parameter is outside its
        range.

    Notes
    -----
    The number of guesses must be fixed before the fit is seen: trying several numbers
    and keeping the best bound needs a confidence for each.

    Examples
    --------
    Randomised response at epsilon = 2:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.random(10_000) < 0.5
    >>> lies = rng.random(10_000) > np.exp(2) / (1 + np.exp(2))
    >>> result = one_run_audit(np.where(coins ^ lies, 1, -1), coins)
    >>> 1.85 < result.epsilon_lower < 2
    True
    """
    told, coins = np.asarray(guesses), np.asarray(included)
    if told.ndim != 1 or told.shape != coins.shape or coins.dtype != bool or told.size == 0:
        raise ValueError(
            "guesses and included must be arrays of one shape (n_canaries,), included of "
            f"booleans, got shapes {told.shape} and {coins.shape} and type {coins.dtype}."
        )
    if not np.isin(told, (-1, 0, 1)).all():
        raise ValueError("guesses must be -1, 0 or 1.")
    check_rate("delta", delta, least=True)
    check_rate("confidence", confidence)
    made = told != 0
    counts = told.size, int(made.sum()), int((made & ((told > 0) == coins)).sum())

    def excess(epsilon: float) -> float:
        return float(_p_values(*counts, epsilon, delta)) - (1 - confidence)

    lower, rejected = 0.0, np.flatnonzero(_p_values(*counts, TRIED, delta) < 1 - confidence)
    if rejected.size and rejected[-1] + 1 < TRIED.size:
        between = TRIED[rejected[-1]], TRIED[rejected[-1] + 1]
        lower = max(float(brentq(excess, *between, xtol=1e-9)) - 2e-9, 0.0)
    return OneRunResult(lower, delta, confidence, *counts, epsilon_claim)


def guesses_from_scores(scores: ArrayLike, n_guesses: int | None = None) -> NDArray[np.int_]:
    """Guess a canary where scores are highest, something harmless where they are lowest.

    Parameters
    ----------
    scores : array-like of shape (n_canaries,)
        Larger where a canary is more likely.
    n_guesses : int, optional
        Guesses to make, half of either kind; by default one for every slot. The slots
        in between get none.

    Returns
    -------
    ndarray of shape (n_canaries,)
        Guesses -1, 0 and 1.

    Raises
    ------
    ValueError
        If scores are not one-dimensional or hold NaN, or `n_guesses` is not between 1
        and their number.

    Examples
    --------
    >>> guesses_from_scores([0.3, 0.1, 0.8, 0.5], n_guesses=2)
    array([ 0, -1,  1,  0])
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise ValueError(f"scores must be a vector without NaN, got shape {values.shape}.")
    number = values.size if n_guesses is None else n_guesses
    if not 1 <= number <= values.size:
        raise ValueError(f"n_guesses must lie between 1 and {values.size}, got {n_guesses!r}.")
    order = np.argsort(values, kind="stable")
    guesses = np.zeros(values.size, dtype=np.int_)
    guesses[order[: number // 2]] = -1
    guesses[order[values.size - (number - number // 2) :]] = 1
    return guesses


def audit_in_one_run(
    estimator: Any,
    canaries: Any,
    harmless: Any,
    *,
    score: Any,
    rest: Any = None,
    n_guesses: int | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
) -> OneRunResult:
    """Bound epsilon of an estimator from below by one fit on many canaries.

    Parameters
    ----------
    estimator : estimator
        Fits one clone, without accountant.
    canaries, harmless : array-like or sparse matrix of n_canaries rows, or tuple of such
        What slot i may hold: row i of the one or of the other, by a fair coin. Tuples
        hold the arguments of ``fit``, such as coordinates and values. Public or made up.
        Replacing one row has to be what the estimator's claim is about.
    score : callable
        ``fitted estimator -> n_canaries numbers``, larger where the canary is likelier.
    rest : like `canaries`, optional
        Rows that are always there, behind the others.
    n_guesses : int, optional
        As for :func:`guesses_from_scores`. Guessing only where scores are extreme shows
        more where noise is Gaussian.
    delta : float, optional
        At which epsilon is bounded; by default that of the report.
    confidence : float, default=0.95
        Probability with which the bound holds.

    Returns
    -------
    OneRunResult
        The bound, beside the claim of the report.

    Raises
    ------
    ValueError
        If scores or parameters are wrong.
    RuntimeError
        Inside a ``with BudgetAccountant(...)`` block.

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
    packed = isinstance(canaries, tuple)
    both = list(zip(canaries, harmless, strict=True)) if packed else [(canaries, harmless)]
    size = _n_rows(both[0][0])
    coins = NoiseSource().integers(2, size).astype(bool)
    rows = np.where(coins, 0, size) + np.arange(size)
    parts = [_rows(_stacked(pair), rows) for pair in both]
    if rest is not None:
        parts = [_stacked(pair) for pair in zip(parts, rest if packed else (rest,), strict=True)]
    fitted = fitted_clone(estimator, tuple(parts) if packed else parts[0])
    claim = Guarantee.of(fitted)
    return one_run_audit(
        guesses_from_scores(score(fitted), n_guesses),
        coins,
        delta=claim.delta_or(delta),
        confidence=confidence,
        epsilon_claim=claim.epsilon,
    )


def _n_rows(part: Any) -> int:
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)


def _rows(part: Any, rows: NDArray[np.intp]) -> Any:
    return [part[row] for row in rows] if isinstance(part, list) else part[rows]


def _stacked(pair: tuple[Any, Any]) -> Any:
    above, below = pair
    if sp.issparse(above):
        return sp.vstack([above, below], format="csr")
    if isinstance(above, list):
        return [*above, *below]
    return np.concatenate([np.asarray(above), np.asarray(below)])
