"""Which steps of an estimator are private, and that no other one learns from data."""

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from sktensor_dp.estimator.base import PrivateEstimatorMixin, check_arguments
from sktensor_dp.estimator.parameters import Number, check_parameters, shown

# Parameters of private steps that the search sets itself.
OWN = ("epsilon", "delta", "accountant", "verbose")
# scikit-learn before 1.7 says of this one that it has to be fitted.
LEARN_NOTHING = ("sklearn.feature_extraction.text.HashingVectorizer",)
# Combinations of listed values that are tried before anything is charged, at most.
MOST_COMBINATIONS = 256


def private_steps(estimator: Any, public_steps: Collection[str]) -> dict[str, Any]:
    """Private steps in their order by name, ``""`` for an estimator that is one; ValueError."""
    found = dict(_private_steps(estimator, "", public_steps))
    if not found:
        raise ValueError("estimator must be private, or a pipeline with a private step; got none.")
    for step in found.values():
        if not step._unit_is_row:
            raise ValueError(
                f"A {type(step).__name__} that protects units of several rows, as with "
                "a unit_mode, is not supported here: rows are held out one by one, and "
                "those of one user would fall on both sides."
            )
        if step.accountant is not None:
            raise ValueError("A private step must have accountant=None; pass it to the search.")
    return found


def checked_distributions(given: Any) -> list[Mapping[str, Any]]:
    """Distributions, of names to lists of values or objects with ``rvs``, as a list."""
    several = [given] if isinstance(given, Mapping) else given
    if not isinstance(several, Sequence) or not all(isinstance(one, Mapping) for one in several):
        raise TypeError(
            "param_distributions must be a dict, or a list of dicts, of lists of values or "
            f"distributions with rvs; got {type(given).__name__}."
        )
    if len(several) == 0:
        raise ValueError("param_distributions must have at least one dict, got an empty list.")
    for name, values in ((name, values) for one in several for name, values in one.items()):
        if hasattr(values, "rvs"):
            continue
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            raise TypeError(
                f"param_distributions[{name!r}] must be a list of values or have an rvs method, "
                f"got {type(values).__name__}."
            )
        if len(values) == 0:
            raise ValueError(f"param_distributions[{name!r}] must not be empty.")
    return list(several)


def check_shares(shares: Any, steps: Mapping[str, Any]) -> None:
    """Refuse shares that are not those of the private steps."""
    if shares is None:
        return
    if not isinstance(shares, Mapping) or set(shares) != set(steps):
        raise ValueError(
            f"step_shares must be None, or map each private step of {list(steps)} to its share of "
            f"the cost of a fit; got {shown(shares)}."
        )
    for name, share in shares.items():
        if not Number(0, math.inf, closed="neither").accepts(share):
            raise ValueError(f"step_shares[{name!r}] must be a number > 0, got {shown(share)}.")


def check_groups_taken(step: Any, groups: Any) -> None:
    """Refuse groups for a private step whose units are no rows."""
    if groups is not None and not has_fit_parameter(step, "groups"):
        check_arguments(step, {"groups": groups})


def check_names(candidates: Mapping[str, Any], estimator: Any, private: Mapping[str, Any]) -> None:
    """Refuse names of parameters that are none, or that the search sets itself."""
    valid = estimator.get_params()
    own = {_prefix(name) + own for name in private for own in OWN}
    for name in candidates:
        if name in own:
            raise ValueError(
                f"{name!r} cannot be searched over: the search sets it for each trial."
            )
        if name not in valid:
            raise ValueError(
                f"param_distributions names {name!r}, which is no parameter of "
                f"{type(estimator).__name__}."
            )


def check_values(
    distributions: Iterable[Mapping[str, Any]], private: Mapping[str, Any], neighbours: str
) -> list[Any]:
    """Private steps, as they are and with each listed value; refuse values out of range.

    Each is tried by itself, and where they are few with all others. What a distribution draws, or
    is wrong only together with the data, is known when it is drawn.
    """
    listed = [pair for some in distributions for pair in _listed(some, private)]
    for own, one in listed:
        if own in one._own_constraints:
            check_parameters(one, {own: one._own_constraints[own]})
    tried = [*private.values(), *(one for _, one in listed)]
    for one in tried:
        check_relation(one, neighbours)
    for one in (step for some in distributions for step in _combined(some, private)):
        one._check_public()
    return tried


def delta_in_use(
    private: Mapping[str, Any], tried: Iterable[Any], epsilon: float, delta: float
) -> tuple[float, bool]:
    """Delta of a search: 0 where a step's noise is pure; and whether one tried sets it aside."""
    sets_aside = max([step._delta_set_aside for step in tried]) > 0
    for step in private.values():
        if step._has_pure_noise:
            delta = 0.0
    if sets_aside and delta == 0 and math.isfinite(epsilon):
        raise ValueError(
            "delta must be > 0, and no step's noise pure: a step of the estimator, such as a "
            "private vocabulary, sets a part of delta aside. Nothing was charged."
        )
    return float(delta), sets_aside


def _combined(candidates: Mapping[str, Any], private: Mapping[str, Any]) -> Iterator[Any]:
    """Private steps with every combination of values, where they are listed and not too many."""
    for step, own in _own_candidates(candidates, private):
        if not any(getattr(step, key) is not None or key in own for key in step._may_clash):
            continue
        drawn = any(hasattr(values, "rvs") for values in own.values())
        if drawn or math.prod(map(len, own.values())) > MOST_COMBINATIONS:
            continue
        for values in itertools.product(*own.values()):
            yield clone(step).set_params(**dict(zip(own, values, strict=True)))


def _listed(candidates: Mapping[str, Any], private: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Private steps with each listed value of one of their parameters, and its name."""
    return [
        (own, clone(step).set_params(**{own: value}))
        for step, candidates_of_step in _own_candidates(candidates, private)
        for own, values in candidates_of_step.items()
        for value in (() if hasattr(values, "rvs") else values)
    ]


def _own_candidates(
    candidates: Mapping[str, Any], private: Mapping[str, Any]
) -> list[tuple[Any, dict[str, Any]]]:
    """Private steps, and the candidates for their own parameters by their own names."""
    each = []
    for name, step in private.items():
        prefix = _prefix(name)
        if prefix and any(prefix.startswith(f"{whole}__") for whole in candidates):
            continue  # candidates for the step itself, whose parameters may be others
        known = step.get_params(deep=False)
        # Of an estimator that is private itself all names are its own.
        found = {full.removeprefix(prefix): full for full in candidates if full.startswith(prefix)}
        each.append((step, {own: candidates[full] for own, full in found.items() if own in known}))
    return each


def _prefix(name: str) -> str:
    return f"{name}__" if name else ""


def configured(
    estimator: Any, params: Mapping[str, Any], public_steps: Collection[str], rng: Any
) -> Any:
    """A clone with the parameters of a candidate, silent, and drawing nothing itself."""
    # `rng` is secret: numpy's global generator would be left in a state that tells how many
    # trials there were.
    values = {name: clone(value, safe=False) for name, value in params.items()}
    model = clone(estimator).set_params(**values)
    private_steps(model, public_steps)
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


def check_alone(private: Mapping[str, Any]) -> None:
    """Refuse steps beside the private one where units come and go."""
    # Others refuse an empty part, which would tell that it is empty; and that they leave out
    # rows is seen by the number of these, which is private.
    if list(private) != [""]:
        raise ValueError(
            "estimator must be a private estimator by itself where neighbours='add_remove', not a "
            "pipeline: a part may have no rows, which other steps refuse. Steps that learn nothing "
            "from the data can be applied to it before the search. Nothing was charged."
        )


def _private_steps(
    estimator: Any, name: str, public_steps: Collection[str]
) -> Iterator[tuple[str, Any]]:
    if getattr(estimator, "_skl_callbacks", None):
        raise ValueError("estimator must have no callbacks: they would see every trial.")
    if isinstance(estimator, PrivateEstimatorMixin):
        yield name, estimator
    elif isinstance(estimator, Pipeline):
        for own, step in estimator.steps:
            if own not in public_steps and step is not None and step != "passthrough":
                yield from _private_steps(step, _prefix(name) + own, public_steps)
    elif _learns(estimator):
        where = f"step {name!r}, a" if name else "a"
        raise ValueError(
            f"estimator has {where} {type(estimator).__name__}, which learns from the data without "
            "privacy. Leave it out, fit it on public data, or name it in public_steps if what it "
            "learns is public."
        )


def _learns(step: Any) -> bool:
    if f"{type(step).__module__}.{type(step).__qualname__}" in LEARN_NOTHING:
        return False
    try:
        tags = get_tags(step)
        # A Gaussian process predicts without fit too, and keeps the rows it was fitted on.
        predicts = tags.estimator_type is not None or not hasattr(step, "transform")
        return bool(tags.requires_fit) or predicts
    except AttributeError:  # not a scikit-learn estimator
        return True
