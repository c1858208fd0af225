"""Which step of an estimator is private, and that no other one learns from data."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from sktensor_dp.estimator.base import PrivateEstimatorMixin
from sktensor_dp.estimator.grouped_rows import check_arguments
from sktensor_dp.estimator.parameters import check_parameters

__all__ = [
    "check_alone",
    "check_groups_taken",
    "check_names",
    "check_relation",
    "check_values",
    "configured",
    "private_prefix",
    "step_at",
]

# Parameters of the private step that the search sets itself.
OWN = ("epsilon", "delta", "accountant", "verbose")


def private_prefix(estimator: Any, public_steps: Collection[str]) -> str:
    """Prefix of the parameters of the one private step, such as ``"lda__"``, or ValueError."""
    found = list(_private_steps(estimator, "", public_steps))
    if len(found) != 1:
        raise ValueError(
            f"estimator must have exactly one private step, got {len(found)} "
            f"{[type(step).__name__ for _, step in found]}. What precedes it, a private vocabulary "
            "for example, is best fitted once, before the search."
        )
    prefix, step = found[0]
    if not step._unit_is_row:
        raise ValueError(
            f"A {type(step).__name__} that protects units of several rows, as with "
            "privacy_unit='slice', is not supported here: rows are held out one by one, and those "
            "of one user would fall on both sides."
        )
    if step.accountant is not None:
        raise ValueError("The private step must have accountant=None; pass it to the search.")
    return prefix


def check_groups_taken(step: Any, groups: Any) -> None:
    """Refuse groups for a private step whose units are no rows."""
    if groups is not None and not has_fit_parameter(step, "groups"):
        check_arguments(step, {"groups": groups})


def check_names(candidates: Mapping[str, Any], estimator: Any, prefix: str) -> None:
    """Refuse names of parameters that are none, or that the search sets itself."""
    valid = estimator.get_params()
    for name in candidates:
        if name in {prefix + own for own in OWN}:
            raise ValueError(
                f"{name!r} cannot be searched over: the search sets it for each trial."
            )
        if name not in valid:
            raise ValueError(
                f"param_distributions names {name!r}, which is no parameter of "
                f"{type(estimator).__name__}."
            )


def check_values(
    candidates: Mapping[str, Any], estimator: Any, prefix: str, neighbours: str
) -> None:
    """Refuse values of the private step that are outside the range of their parameter.

    Each is tried by itself. What a distribution draws, or is wrong only together with
    others or with the data, is known when it is drawn.

    Raises
    ------
    ValueError
        Naming the parameter.
    """
    if prefix and any(prefix.startswith(f"{name}__") for name in candidates):
        return  # candidates for the step itself, whose parameters may be others
    step = clone(step_at(estimator, prefix))
    for name, values in candidates.items():
        own = name.removeprefix(prefix)
        known = name.startswith(prefix) and own in step._own_constraints
        constraints = {own: step._own_constraints[own]} if known else {}
        for value in values if constraints and not hasattr(values, "rvs") else ():
            one = clone(step).set_params(**{own: value})
            check_parameters(one, constraints)
            check_relation(one, neighbours)


def configured(
    estimator: Any, params: Mapping[str, Any], public_steps: Collection[str], rng: Any
) -> Any:
    """A clone with the parameters of a candidate, silent, and drawing nothing itself."""
    # `rng` is secret: numpy's global generator would be left in a state that tells how many
    # trials there were.
    values = {name: clone(value, safe=False) for name, value in params.items()}
    model = clone(estimator).set_params(**values)
    private_prefix(model, public_steps)
    quiet: dict[str, Any] = {}
    for name, value in sorted(model.get_params().items()):
        last = name.split("__")[-1]
        if last == "random_state" and value is None:
            quiet[name] = int(rng.randint(np.iinfo(np.int32).max))
        elif last == "verbose":
            quiet[name] = False if isinstance(value, bool) else 0
        elif last == "memory":
            # A cache would keep on disk what trials that lost have fitted.
            quiet[name] = None
    return model.set_params(**quiet)


def check_relation(step: Any, neighbours: str) -> None:
    """Refuse a private step for other neighbours than those that the search is for."""
    if step.neighbours != neighbours:
        raise ValueError(
            f"neighbours of the search and of the {type(step).__name__} must be the same, or its "
            f"fits and its scores would protect different things; got {neighbours!r} and "
            f"{step.neighbours!r}. Set neighbours of both."
        )


def check_alone(prefix: str) -> None:
    """Refuse steps beside the private one where units come and go."""
    # Others refuse an empty part, which would tell that it is empty; and that they leave out
    # rows is seen by the number of these, which is private.
    if prefix:
        raise ValueError(
            "estimator must be a private estimator by itself where neighbours='add_remove', not a "
            "pipeline: a part may have no rows, which other steps refuse. Steps that learn nothing "
            "from the data can be applied to it before the search. Nothing was charged."
        )


def step_at(estimator: Any, prefix: str) -> Any:
    """Step whose parameters have a prefix."""
    for name in prefix.split("__")[:-1]:
        estimator = estimator.named_steps[name]
    return estimator


def _private_steps(
    estimator: Any, prefix: str, public_steps: Collection[str]
) -> Iterator[tuple[str, Any]]:
    if getattr(estimator, "_skl_callbacks", None):
        raise ValueError("estimator must have no callbacks: they would see every trial.")
    if isinstance(estimator, PrivateEstimatorMixin):
        yield prefix, estimator
    elif isinstance(estimator, Pipeline):
        for name, step in estimator.steps:
            if name not in public_steps and step is not None and step != "passthrough":
                yield from _private_steps(step, f"{prefix}{name}__", public_steps)
    elif _learns(estimator):
        where = f"step {prefix[:-2]!r}, a" if prefix else "a"
        raise ValueError(
            f"estimator has {where} {type(estimator).__name__}, which learns from the data without "
            "privacy. Leave it out, fit it on public data, or name it in public_steps if what it "
            "learns is public."
        )


def _learns(step: Any) -> bool:
    try:
        tags = get_tags(step)
        # A Gaussian process predicts without fit too, and keeps the rows it was fitted on.
        predicts = tags.estimator_type is not None or not hasattr(step, "transform")
        return bool(tags.requires_fit) or predicts
    except AttributeError:  # not a scikit-learn estimator
        return True
