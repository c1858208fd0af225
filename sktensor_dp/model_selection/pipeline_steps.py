"""Steps of an estimator: private ones, and known ones that learn nothing from the data."""

import math
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from sktensor_dp.checks.composed import encodable
from sktensor_dp.checks.errors import call_unquoted
from sktensor_dp.checks.frames import as_documents
from sktensor_dp.checks.parameters import Number, check_parameters, nearest, shown
from sktensor_dp.estimator.base import PrivateEstimatorMixin
from sktensor_dp.model_selection.range_scaler import RangeScaler

# Parameters of private steps that the search sets, or that decide what it protects.
OWN = ("epsilon", "delta", "accountant", "verbose", "neighbours", "unit_mode", "shape", "row_names")
# Largest numbers of combinations that are checked before anything is charged: of listed values, and
# of drawn ones.
MOST_LISTED, MOST_DRAWN = 256, 10
# Classes of scikit-learn that learn nothing and treat every row separately.
VECTORIZERS = ("HashingVectorizer", "CountVectorizer")
STATELESS = (*VECTORIZERS, "Normalizer", "Binarizer")


def steps_of(estimator: BaseEstimator) -> dict[str, BaseEstimator]:
    """Steps of a pipeline by name, without those passed through; ``{"": estimator}`` for others."""
    if not isinstance(estimator, Pipeline):
        return {"": estimator}
    return {name: step for name, step in estimator.steps if step not in (None, "passthrough")}


def check_forecast_options(options: Mapping[str, object], last: PrivateEstimatorMixin) -> None:
    """Raise ValueError for options of forecasts that the last step's forecast does not take."""
    taken = last._public_facts().guesses
    if unknown := sorted(set(map(str, options)) - set(taken)):
        known = f"map some of {[*taken]} to public guesses" if taken else "be None"
        raise ValueError(
            f"forecast_options must {known}: the forecast of {type(last).__name__} does not take "
            f"{unknown}."
        )


def vectorized_columns(estimator: BaseEstimator) -> int | None:
    """Number of columns of a vectorizer before the last step, by its vocabulary or hashes; or None.

    The vocabulary is a parameter, so public.
    """
    parameters = [step.get_params() for step in [*steps_of(estimator).values()][:-1]]
    vocabularies = [one["vocabulary"] for one in parameters if one.get("vocabulary") is not None]
    hashed = [one["n_features"] for one in parameters if "alternate_sign" in one]
    return next(iter([*map(len, vocabularies), *hashed]), None)


def private_steps(estimator: BaseEstimator) -> dict[str, BaseEstimator]:
    """Private steps of an estimator by name, "" for itself.

    ValueError if other steps may learn from the data, or if private ones do not go together.
    """
    steps = steps_of(estimator)
    if any(getattr(one, "_skl_callbacks", None) for one in (estimator, *steps.values())):
        raise ValueError("estimator must have no callbacks: they would see every trial.")
    found = {}
    for name, step in steps.items():
        if isinstance(step, PrivateEstimatorMixin):
            found[name] = step
        else:
            _refuse_unlisted(step, f"step {name!r}, a" if name else "a")
    if not found:
        raise ValueError("estimator must be private, or a pipeline with a private step; got none.")
    is_pipeline = "" not in found
    for step in found.values():
        if is_pipeline and step._public_facts().units_in_data:
            raise ValueError(
                f"A {type(step).__name__} with a unit_mode must be by itself, not a step of a "
                "pipeline: which rows are one unit's is read from X. Apply steps that learn "
                "nothing from the data before."
            )
    if len({step.neighbours for step in found.values()}) > 1:
        raise ValueError("neighbours of all private steps must be the same.")
    return found


def before_private(estimator: BaseEstimator, X: object) -> tuple[str, Any]:
    """Name of the first private step, and `X` transformed by the steps before it."""
    for name, step in steps_of(estimator).items():
        if isinstance(step, PrivateEstimatorMixin):
            return name, X
        X = step.transform(X)
    raise AssertionError


def checked_rows(estimator: BaseEstimator, X: Any) -> Any:
    """`X` as texts or numbers for the first step, so that no row decides the type of all."""
    first = next(iter(steps_of(estimator).values()))
    if _kind(first) in VECTORIZERS:
        X = as_documents(X, "X")
        if getattr(X, "ndim", 1) != 1 or not all(isinstance(text, str) for text in X):
            raise ValueError("X must hold texts, in a list or a column.")
        return [encodable(text) for text in X]
    if get_tags(first).input_tags.string or not isinstance(X, list | tuple):
        return X  # as it is
    return call_unquoted(lambda: np.asarray(X, dtype=np.float64), "X")


def checked_distributions(given: object) -> list[Mapping[str, object]]:
    """List of dicts from names of parameters to lists of values or distributions."""
    several = list(ParameterSampler(given, 1).param_distributions)  # refuses other types
    if not several:
        raise ValueError("param_distributions must have at least one dict, got an empty list.")
    for one in several:  # refuses what is no list of values
        ParameterGrid({name: values for name, values in one.items() if not hasattr(values, "rvs")})
    return several


def check_fractions(fractions: object, steps: Mapping[str, BaseEstimator]) -> None:
    """Raise ValueError unless `fractions` is None or maps each private step to a number > 0."""
    positive = Number(0, math.inf, closed="neither")
    given = fractions if isinstance(fractions, Mapping) else {}
    are_parts = set(given) == set(steps) and all(map(positive.accepts, given.values()))
    if fractions is not None and not are_parts:
        rule = ""
        if "" not in steps:  # of a pipeline
            rule = f", or map each private step of {[*steps]} to a number > 0, its part of the cost"
        raise ValueError(f"step_fractions must be None{rule}; got {shown(fractions)}.")


def tried_steps(
    distributions: Iterable[Mapping[str, Any]], estimator: BaseEstimator
) -> list[BaseEstimator]:
    """Private steps with each listed value of parameters; ValueError for wrong names or values."""
    steps = steps_of(estimator)
    tried: list[BaseEstimator] = []
    for candidates in distributions:
        for name in candidates:
            step, parameter = owner_of(name, steps)
            if step is None or parameter not in step.get_params(deep=False):
                possible = [
                    f"{prefix}__{own}".removeprefix("__")  # of an estimator by itself
                    for prefix, step in steps.items() for own in step.get_params(deep=False)
                ]  # fmt: skip
                raise ValueError(
                    "param_distributions names what is no parameter of the "
                    f"{type(estimator).__name__} or of a step of it: {nearest(str(name), possible)}"
                )
            if parameter in OWN and isinstance(step, PrivateEstimatorMixin):
                raise ValueError(
                    f"{name!r} cannot be searched over: the search sets it, or protects by it, or "
                    "it says what the data are."
                )
        listed = {name: values for name, values in candidates.items() if not hasattr(values, "rvs")}
        choices: Any = ParameterGrid(listed)
        if len(listed) < len(candidates) or len(choices) > MOST_LISTED:
            # In place of whole candidates, none of the listed values, and each by itself.
            choices = [{}, *({name: value} for name in listed for value in listed[name])]
        for choice in choices:
            tried += _checked_steps(estimator, choice, candidates.keys() - choice.keys())
    return tried


def candidates_of(
    distributions: Sequence[Mapping[str, object]], most: int = MOST_LISTED
) -> list[dict[str, Any]]:
    """All candidates if they are listed and at most `most`; else `MOST_DRAWN`, by a public seed."""
    values = [values for candidates in distributions for values in candidates.values()]
    is_listed = not any(hasattr(one, "rvs") for one in values)
    n_drawn = most if is_listed and len(ParameterGrid(distributions)) <= most else MOST_DRAWN
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the sampler warns where there are fewer than `n_drawn`
        return [*ParameterSampler(distributions, n_drawn, random_state=0)]


def parameters_in_words(params: Mapping[str, object]) -> str:
    """Parameters of a candidate and their values; types of those that may be data."""
    return ", ".join(f"{name}={_shown(value)}" for name, value in params.items())


def candidates_in_words(candidates: Mapping[str, Any]) -> str:
    """Parameters searched over, each with its listed values, or the type of a distribution."""
    most = 10  # values of a parameter that are named
    named = []
    for name, values in candidates.items():
        if hasattr(values, "rvs"):
            said = f"a {type(values).__name__}"
        else:
            said = " or ".join(map(_shown, values[:most])) + " or others" * (len(values) > most)
        named.append(f"{name} of {said}")
    return ", ".join(named)


def _shown(value: object) -> str:
    """Text of a parameter's value, as `shown` has it, for numbers of numpy those of Python."""
    return shown(value.item() if isinstance(value, np.generic) else value)


def key_until_charge(params: Mapping[str, object], estimator: BaseEstimator) -> tuple[object, ...]:
    """Key of a candidate's parameters for the steps until the first one that is charged."""
    names: list[str] = []
    for name, step in steps_of(estimator).items():
        names.append(name)
        if isinstance(step, PrivateEstimatorMixin) and not step._public_facts().releases_nothing:
            break
    # An estimator by itself, of the name "", has no later steps. Values of a list are the same
    # objects in all candidates.
    is_early = {name: "" in names or name.partition("__")[0] in names for name in params}
    return tuple((name, id(value)) for name, value in params.items() if is_early[name])


def owner_of(full: str, steps: Mapping[str, BaseEstimator]) -> tuple[BaseEstimator | None, str]:
    """Step, or None, of a parameter by its `full` name, step__parameter; and its name there."""
    is_pipeline = "" not in steps
    name, _, parameter = full.partition("__") if is_pipeline else ("", "", full)
    return steps.get(name), parameter


def with_values(estimator: BaseEstimator, choice: Mapping[str, object]) -> BaseEstimator:
    """Clone of an estimator with clones of the values of parameters."""
    values = {name: clone(value, safe=False) for name, value in choice.items()}
    return clone(estimator).set_params(**values)


def _checked_steps(
    estimator: BaseEstimator, choice: Mapping[str, object], left_out: Collection[str]
) -> list[BaseEstimator]:
    """Private steps with the values of `choice`, checked but for parameters that are `left_out`.

    The search itself sets the parameters of privacy, all but `random_state`.
    """
    private = private_steps(with_values(estimator, choice))
    for name, step in private.items():
        rules = {**step._own_constraints, "random_state": step._privacy_constraints["random_state"]}
        prefix = f"{name}__" if name else ""
        listed = {one for one in step.get_params(deep=False) if prefix + one not in left_out}
        check_parameters(step, {name: rule for name, rule in rules.items() if name in listed})
        if not left_out:  # their values may combine or not
            step._check_combined()
    return [*private.values()]


def configured(
    estimator: BaseEstimator, params: Mapping[str, object], rng: np.random.RandomState
) -> BaseEstimator:
    """Clone of an estimator with the parameters of a candidate, not verbose, seeded by `rng`."""
    # In a trial `rng` is secret. The state of numpy's global generator, in its place, would show
    # the number of trials.
    model = with_values(estimator, params)
    private_steps(model)  # refuses a drawn step that may learn from the data
    if isinstance(model, Pipeline):  # without a cache, which would keep losing trials on disk
        model.set_params(memory=None)
    for step in steps_of(model).values():
        parameters = step.get_params(deep=False)
        if "verbose" in parameters:
            step.set_params(verbose=0)
        if "random_state" in parameters and parameters["random_state"] is None:
            step.set_params(random_state=int(rng.randint(np.iinfo(np.int32).max)))
    return model


def _kind(step: BaseEstimator) -> str | None:
    """Class name of a step of scikit-learn's own; None for others: a subclass may do anything."""
    of_sklearn = type(step).__module__.split(".")[0] == "sklearn"
    return type(step).__name__ if of_sklearn else None


def _refuse_unlisted(step: BaseEstimator, where: str) -> None:
    """Raise ValueError for a step that may learn from the data; `where` says which one it is."""
    kind = _kind(step)
    allowed = kind in STATELESS or isinstance(step, RangeScaler)
    if kind in VECTORIZERS:
        # Functions of the caller may fail on a row, or keep it.
        functions = (step.preprocessor, step.tokenizer, step.analyzer, step.strip_accents)
        allowed = step.input == "content" and not any(map(callable, functions))
        allowed = allowed and (kind != "CountVectorizer" or step.vocabulary is not None)
    if not allowed:
        raise ValueError(
            f"estimator has {where} {type(step).__name__}, which may learn from the data without "
            "privacy. Beside private steps there may be HashingVectorizer and CountVectorizer("
            "vocabulary=...) of texts without functions of your own, Normalizer, Binarizer and "
            "scale_by_ranges(...) in the place of a scaler. Apply functions of rows before."
        )
