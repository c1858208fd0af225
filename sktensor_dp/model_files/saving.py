"""Fitted estimators in files: released values, the report and parameters, and no code."""

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Self, get_args

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.exceptions import ModelFileError
from sktensor_dp.model_files.container import pack, read_file, unpack, write_file
from sktensor_dp.model_files.fields import (
    Arrays,
    Field,
    Flag,
    Integer,
    ListOf,
    Optional,
    Real,
    Record,
    Text,
    Words,
    require,
)
from sktensor_dp.model_files.fitted_state import FittedStateMixin
from sktensor_dp.model_files.parameters import read_parameter, write_parameter
from sktensor_dp.privacy.composition import Composition, Kind, Part, ReleaseRecord
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost
from sktensor_dp.privacy.report import PrivacyReport, library_version

FORMAT, FORMAT_VERSION = "sktensor_dp model", 1
KEYS = {"format", "version", "library", "class", "parameters", "state"}
# An open ledger, not a value; a loaded model has none.
NOT_SAVED = ("accountant",)

COST = Real(0, finite=False)
RELEASE_RECORD = Record(
    ReleaseRecord,
    {
        "name": Text(), "description": Text(), "sensitivity": COST, "sigma": COST, "mu": COST,
        "epsilon": COST, "delta": Real(0, 1), "uses": Integer(), "mechanism": Text(),
    },
)  # fmt: skip
COST_RECORD = Record(PrivacyCost, {"mu": COST, "epsilon": COST, "delta": Real(0, 1)})
PLANNED = Record(PlannedRelease, {"name": Text(), "cost": COST_RECORD, "uses": Integer()})

MEMBER = Record(
    lambda role, number: (role, number),
    {"role": Text(), "number": Integer(1)},
    take=lambda pair: dict(zip(("role", "number"), pair, strict=True)),
)


def _composition(deepest: int) -> Record:
    """A tree of releases of so many levels; those of fits have up to five."""
    parts: dict[str, Field] = {
        "kind": Text(get_args(Kind)), "rows": ListOf(RELEASE_RECORD, tuple),
        "unmade": ListOf(PLANNED, tuple), "memberships": ListOf(ListOf(MEMBER, tuple), tuple),
        "n_trials": Real(1), "epsilon": COST, "delta": Real(0, 1),
        "parts": ListOf(Text(), tuple, longest=0),
    }  # fmt: skip
    if deepest > 1:
        inner = {
            "role": Text(), "n_units": Integer(), "of": _composition(deepest - 1),
            "times": Integer(1),
        }  # fmt: skip
        parts["parts"] = ListOf(Record(Part, inner), tuple)
    return Record(Composition, parts)


REPORT = Record(
    PrivacyReport,
    {
        "epsilon": COST, "delta": Real(0, 1), "unit": Text(), "neighbours": Text(),
        "n_units": Integer(), "sampler": Text(), "seeded": Flag(),
        "rows": ListOf(RELEASE_RECORD, tuple), "notes": ListOf(Text(), tuple),
        "composition": Optional(_composition(8)),
    },
)  # fmt: skip


def _names(words: list[str]) -> Any:
    return np.array(words, dtype=object)


# What scikit-learn's validation of a table leaves behind.
INPUT: dict[str, Field] = {
    "n_features_in_": Integer(1, letter="d"),
    "feature_names_in_": Optional(Words(_names, "d")),
}


@dataclass(frozen=True)
class SavedState:
    """Attributes that make a fitted estimator: released or public values, and nothing else."""

    parts: Mapping[str, Field]
    check: Callable[[SimpleNamespace, Any], None]
    aliases: Mapping[str, Callable[[SimpleNamespace], Any]]

    @property
    def record(self) -> Record:
        """All attributes as one field."""
        return Record(SimpleNamespace, {**self.parts, "privacy_report_": REPORT})


class ModelFileMixin(FittedStateMixin):
    """``save`` and ``load``; a subclass declares its fitted attributes in ``_saved_state``."""

    _saved_state: ClassVar[SavedState]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file.

        The file holds what was released, the privacy report and the parameters: arrays
        and JSON in the safetensors format, without code. It is as public as the model
        itself. A file of that name is replaced, and only once the new one is complete.

        Parameters
        ----------
        path : str or path-like
            Where to write.

        Raises
        ------
        NotFittedError
            If nothing has been fitted.
        TypeError
            If a parameter cannot be saved: a function, or a ``RandomState``.
        ValueError
            If parameters or attributes were changed to what no fit leaves behind.
        OSError
            If the file cannot be written.

        Notes
        -----
        Not saved are ``accountant``, which is None after loading, and the choices of
        ``set_output`` and of metadata routing. Equal models give equal bytes.
        """
        check_is_fitted(self)
        parts = pack(*_written(self))
        # What could not be loaded is refused here, where it can still be mended.
        _model_in(type(self), b"".join(parts))
        write_file(path, parts)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that :meth:`save` wrote.

        No code of the file is run and nothing is imported on its behalf: it fills
        declared attributes with checked values, or is refused.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        estimator : object
            The fitted model, with ``accountant=None``.

        Raises
        ------
        ModelFileError
            If the file is damaged, holds no model of this class, is of another
            format, or its values do not make a model.
        OSError
            If it cannot be read.

        Notes
        -----
        The checksum in the file shows damage, not who wrote it: someone who can change
        the file can change numbers and checksum alike. Compare the file's digest with
        one from a source you trust before you rely on it.
        """
        return _model_in(cls, read_file(path))

    def _parameter_to_save(self, name: str) -> Any:
        """A parameter as files have it; a subclass makes plain values of tables with names."""
        return getattr(self, name)

    def _restore(self, state: SimpleNamespace) -> None:
        """Take over attributes that were checked; their names are those declared."""
        aliases = {name: of(state) for name, of in self._saved_state.aliases.items()}
        self._publish({**vars(state), **aliases})


def _written(estimator: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Document and arrays of a fitted estimator."""
    cls = type(estimator)
    arrays = Arrays()
    try:
        state = cls._saved_state.record.write(estimator, arrays, "")
    except AttributeError as error:
        raise NotFittedError(
            f"This {cls.__name__} is not fitted: it has no {error}. Call fit before save."
        ) from None
    parameters = {}
    for name in _parameter_names(cls):
        try:
            parameters[name] = write_parameter(estimator._parameter_to_save(name), arrays, name)
        except TypeError:
            raise TypeError(
                f"The {name!r} parameter of {cls.__name__} cannot be saved: it is a "
                f"{type(getattr(estimator, name)).__name__}, and a model file holds only numbers, "
                "strings, None and collections of them. Set it to such a value first."
            ) from None
    document = {
        "format": FORMAT, "version": FORMAT_VERSION, "library": library_version(),
        "class": cls.__name__, "parameters": parameters, "state": state,
    }  # fmt: skip
    return document, arrays.by_name


def _model_in(cls: type, data: bytes) -> Any:
    """The fitted estimator that a file holds, made once everything has been checked."""
    document, by_name = unpack(data)
    _check_heading(cls, document)
    written, names = document["parameters"], _parameter_names(cls)
    known = isinstance(written, dict) and set(written) == set(names)
    require(known, f"parameters must be {names}")
    arrays = Arrays(by_name)
    parameters = {name: read_parameter(value, 0, arrays) for name, value in written.items()}
    saved: SavedState = cls._saved_state  # type: ignore[attr-defined]
    state = saved.record.read(document["state"], arrays, "")
    require(arrays.used == by_name.keys(), "every array must belong to an attribute")
    try:
        estimator = cls(**parameters)
        estimator._check_parameters()
        saved.check(state, estimator)
    except ModelFileError:
        raise
    except Exception as error:
        # Whatever a value of a strange type does to a check is a refusal. The check's own
        # message would quote the file.
        blamed = [name for name in parameters if repr(name) in str(error)]
        raise ModelFileError(
            f"The file's parameters are none of {cls.__name__}{': ' if blamed else ''}"
            f"{', '.join(blamed)}."
        ) from None
    estimator._restore(state)
    return estimator


def _check_heading(cls: type, document: dict[str, Any]) -> None:
    if document.get("format") != FORMAT:
        raise ModelFileError("The file holds no model.")
    version = document.get("version")
    if type(version) is not int or version != FORMAT_VERSION:
        raise ModelFileError(
            f"The file's format number is not {FORMAT_VERSION}, the only one that this version of "
            "sktensor_dp reads. Load the file with the version that wrote it."
        )
    require(document.keys() == KEYS, f"the document must have the keys {sorted(KEYS)}")
    require(isinstance(document["library"], str), "library must be text")
    found = document["class"]
    if found != cls.__name__:
        known = isinstance(found, str) and found in _class_names(ModelFileMixin)
        other = f"of {found!r}" if known else "of another class"
        raise ModelFileError(f"The file holds a model {other}, not of {cls.__name__!r}.")


def _class_names(cls: type) -> set[str]:
    return {cls.__name__}.union(*map(_class_names, cls.__subclasses__()))


def _parameter_names(cls: type) -> list[str]:
    names = list(inspect.signature(cls).parameters)
    return [name for name in names if name not in NOT_SAVED]
