"""What a tensor power method will release, from public numbers only."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sktensor_dp.privacy.plan import ReleasePlan, check_feasible
from sktensor_dp.spectral_topics.plan import effective_documents

# Shares of mu^2. The second moment decides the subspace and the scale of all components.
SHARES = {"second_moments": 0.5, "third_moment_histogram": 0.02, "third": 0.48}
# Starts polished to this many iterations once a tensor is released; it costs nothing.
AFTER_RELEASE = 100


@dataclass(frozen=True)
class MomentPlan:
    """Decisions that may depend on public numbers only."""

    n_components: int  # capped by the number of features
    # "whitened_tensor" or "moment_tensor" or "iteration" or "stream": where noise is added.
    perturbation: str
    whiten: bool  # whether third moments are whitened by second ones
    # Of the power method.
    n_restarts: int
    max_iter: int
    quantile: float  # share of samples whose third moment is left unclipped
    releases: ReleasePlan  # the budget; of one batch in a stream


def plan_moments(
    n_samples: int,
    n_features: int,
    n_components: int,
    *,
    epsilon: float,
    delta: float,
    perturbation: str,
    whiten: bool,
    n_restarts: int,
    max_iter: int | None,
    to_fit: bool = False,
) -> MomentPlan:
    """Choose releases and split the budget; what is to be fitted has to fit into memory."""
    k = min(n_components, n_features)
    if max_iter is None:
        by_steps = perturbation in ("iteration", "stream")
        max_iter = power_iterations_needed(n_features) if by_steps else AFTER_RELEASE
    shares = _shares(perturbation, whiten, exact=math.isinf(epsilon))
    uses = {"power_iterations": k * (max_iter + 1)} if perturbation == "iteration" else {}
    feasible = _feasible(
        n_features, perturbation, k, n_restarts, "second_moments" in shares,
        noisy=not math.isinf(epsilon), pure=delta == 0,
    )  # fmt: skip
    plan = MomentPlan(
        n_components=k,
        perturbation=perturbation,
        whiten=whiten,
        n_restarts=n_restarts,
        max_iter=max_iter,
        quantile=_quantile(n_samples, epsilon, delta),
        releases=ReleasePlan.split(epsilon, delta, shares, uses),
    )
    if to_fit:
        feasible()
    return plan


def _shares(perturbation: str, whiten: bool, *, exact: bool) -> dict[str, float]:
    """What each release gets of the budget, relative to the others."""
    if perturbation in ("iteration", "stream"):
        return {"power_iterations": 1.0}
    shares = {}
    if whiten or perturbation == "whitened_tensor":
        shares["second_moments"] = SHARES["second_moments"]
    if perturbation == "whitened_tensor" and not exact:
        shares["third_moment_histogram"] = SHARES["third_moment_histogram"]
    whitened = perturbation == "whitened_tensor"
    return {**shares, "projected_third_moments" if whitened else "third_moments": SHARES["third"]}


def _feasible(
    n_features: int,
    perturbation: str,
    n_components: int,
    n_restarts: int,
    with_pairs: bool,
    *,
    noisy: bool,
    pure: bool,
) -> Callable[[], None]:
    """Refuses features whose moments, or steps on them, memory cannot hold."""
    d = float(n_features)
    if perturbation in ("iteration", "stream"):
        numbers, advice = d * (n_components + n_restarts), "or less n_restarts"
    else:
        # Without a second moment there is no subspace: the third one is of all features.
        numbers = d**2 if with_pairs else d**3
        advice = "or by perturbation='stream', which needs memory in proportion to them"
    drawn = d * (d + 1) / 2 if with_pairs else d * n_restarts
    return partial(
        check_feasible, numbers, f"A fit of {n_features} features by perturbation={perturbation!r}",
        f"Fit fewer features, {advice}.", drawn=drawn if noisy else 0.0, spherical=noisy and pure,
    )  # fmt: skip


def power_iterations_needed(n_features: int) -> int:
    """Iterations from a random start: a logarithm of the dimension, and a few to converge."""
    return math.ceil(math.log2(max(n_features, 2))) + 4


def _quantile(n_samples: int, epsilon: float, delta: float) -> float:
    """Clip few samples, and fewer the less noise there is: clipping is a bias."""
    return 1 - min(0.05, 500 / effective_documents(n_samples, epsilon, delta))


def is_stream(estimator: Any, source: Any, n_samples: int | None) -> bool:
    """Whether each chunk of a source is a batch of a stream."""
    apart = hasattr(source, "sum")
    if estimator.perturbation == "stream" and apart:
        raise TypeError(
            "source must be an iterable of batches for perturbation='stream', got a "
            f"{type(source).__name__}, whose parts add up elsewhere."
        )
    if estimator.perturbation != "auto":
        return bool(estimator.perturbation == "stream")
    public = n_samples is None and estimator.neighbours == "replace_one"
    return public and not apart and estimator.moment == "raw"
