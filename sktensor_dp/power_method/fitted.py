"""Fitted components, their public attributes, and warnings about them."""

import math
from dataclasses import dataclass
from typing import Any

from sktensor_dp.checks.display import counted
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.power_method.plan import RESOLVED, ComponentPlan
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.power_method import OnlinePowerMethod


@dataclass(frozen=True, eq=False)
class FittedComponents:
    """Components estimated from released values, with their weights."""

    components: Floats  # (k, n_features): unit vectors
    weights: Floats  # (k,): of components' cubes, decreasing
    n_resolved: int  # number of components above the noise


def components_of(method: OnlinePowerMethod) -> FittedComponents:
    """Components that a power method has found so far, the current one included."""
    weights, vectors = method.components()
    # By noise alone T(u, u, u) is about one deviation, and about three from the best start.
    return FittedComponents(vectors, weights, n_resolved=method.n_above(RESOLVED))


def attributes_of(fitted: FittedComponents, plan: ComponentPlan) -> dict[str, Any]:
    """Fitted attributes by name."""
    return {
        "components_": fitted.components,
        "weights_": fitted.weights,
        "n_components_": len(fitted.components),
        "n_iter_": plan.max_iter,
        "_n_features_out": len(fitted.components),
    }


def warnings_of_noise(
    fitted: FittedComponents, n_components: int, epsilon: float
) -> tuple[Warning, ...]:
    """Warning, if any, that noise hides some of the components asked for."""
    wanted = min(n_components, fitted.components.shape[1])  # as many as features have room for
    if fitted.n_resolved >= wanted or (math.isinf(epsilon) and len(fitted.components) >= wanted):
        return ()
    ways = "A larger epsilon, a smaller data_norm or fewer n_components"
    if math.isinf(epsilon):
        ways = "Fewer n_components"
    return (
        NotEnoughDataWarning(
            f"Of {counted(wanted, 'component')} sought, released values show "
            f"{fitted.n_resolved} above their noise; {len(fitted.components)} were fitted. "
            f"{ways} would help, and more samples, if the fit is to samples (see forecast())."
        ),
    )
