"""Saving and loading of fitted estimators: released values, the report and parameters, no code."""

import inspect
import os
from collections.abc import Iterable
from typing import Any, ClassVar, Self

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.exceptions import ModelFileError
from sktensor_dp.model_files.container import Arrays, pack, read_file, require, unpack, write_file
from sktensor_dp.model_files.fields import SavedState, as_json, read_parameter
from sktensor_dp.privacy.payer import NEEDS_PAYER, attribute_of_payment

FORMAT, FORMAT_VERSION = "sktensor_dp model", 1
# The accountant is an open ledger, not a value: loaded models have none.
NOT_SAVED = ("accountant",)


class ModelFileMixin:
    """Mixin with ``save`` and ``load``; a subclass declares its fitted attributes in ``_saved``."""

    _saved: ClassVar[type[SavedState]]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file.

        The file holds what was released, the privacy report and the parameters, without code, in
        the safetensors format. It is as public as the model. A file of that name is replaced once
        the new one is complete, and its permissions are kept; a link is followed.

        Parameters
        ----------
        path : str or path-like
            Where to write; missing folders are made.

        Raises
        ------
        NotFittedError, OSError
            If nothing has been fitted; if the file cannot be written, or a pipe, a device or a
            folder is there.
        TypeError, ValueError
            If a parameter cannot be saved (a function, or a ``RandomState``), or parameters or
            attributes were changed to what no fit leaves behind.

        Notes
        -----
        Not saved are ``accountant``, and the choices of ``set_output`` and of metadata routing.
        Equal models give equal bytes. Where an accountant paid, the file says so.
        """
        check_is_fitted(self)
        arrays = Arrays()
        try:
            state = self._saved.of(self)
        except AttributeError as error:
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted: it has no {error}. Call fit before "
                "save."
            ) from None
        parts = _pieces(self, as_json(state, arrays, ""), arrays)
        # Refuse, before anything is written, a model that could not be loaded.
        _model_in(type(self), b"".join(parts))
        write_file(path, parts)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that :meth:`save` wrote.

        No code of the file is run: it fills declared attributes with checked values, or is refused.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        estimator : object
            The fitted model, with ``accountant=None``. Where one paid, further fits are refused
            until it is given again.

        Raises
        ------
        ModelFileError, OSError
            If the file is damaged, or holds no model of this class; if it cannot be read.

        Notes
        -----
        The checksum in the file shows damage, not who wrote it: compare the file's digest with one
        from a source you trust before you rely on it.
        """
        return _model_in(cls, read_file(path))

    def _parameter_to_save(self, name: str) -> Any:
        """Value of parameter `name` for the file; completions turn names of rows into lists."""
        return getattr(self, name)


def load_any(path: str | os.PathLike[str], classes: Iterable[type]) -> Any:
    """Read a model of one of the `classes`, whichever the file names."""
    data = read_file(path)
    name = unpack(data)[0].get("class")
    return _model_in(next((one for one in classes if one.__name__ == name), ModelFileMixin), data)


def check_saving(estimator: object) -> None:
    """Raise what ``save`` would raise for the parameters, before a fit is charged."""
    data = b"".join(_pieces(estimator, state=None, arrays=Arrays()))
    content, arrays = _content(type(estimator).__name__, data)
    for value in content["parameters"].values():
        read_parameter(value, arrays)


def _pieces(estimator: Any, state: Any, arrays: Arrays) -> list[bytes]:
    """Content of a file, in pieces of bytes: parameters of an estimator and its state as JSON."""
    cls, parameters = type(estimator), {}
    for name in _parameter_names(cls):
        try:
            value = estimator._parameter_to_save(name)
            parameters[name] = as_json(value, arrays, f"parameter_{name}")
        except TypeError:
            raise TypeError(
                f"The {name!r} parameter of {cls.__name__} cannot be saved: it is a "
                f"{type(getattr(estimator, name)).__name__}, and a model file holds only numbers, "
                "strings, None and collections of them. Set it to such a value first."
            ) from None
    heading = {"format": FORMAT, "version": FORMAT_VERSION, "class": cls.__name__}
    was_paid = NEEDS_PAYER in vars(estimator)  # later fits need a payer where one paid before
    content = {"parameters": parameters, "paid": was_paid, "state": state}
    return pack({**heading, **content}, arrays.by_name)


def _model_in(cls: Any, data: bytes) -> Any:
    """Fitted estimator of class `cls` that the bytes of a file hold; ModelFileError if none."""
    content, arrays = _content(cls.__name__, data)
    names = _parameter_names(cls)
    saved = content["parameters"]
    require(isinstance(saved, dict) and {*saved} == {*names}, f"parameters must be {names}")
    require(isinstance(content["paid"], bool), "paid must be true or false")
    parameters = {name: read_parameter(value, arrays) for name, value in saved.items()}
    state = cls._saved.read(arrays, content["state"])
    require(arrays.used == arrays.by_name.keys(), "every array must belong to an attribute")
    try:
        estimator = cls(**parameters)
        estimator._check_parameters("load")
        attributes = state.attributes(estimator)
    except ModelFileError:
        raise
    except Exception as error:
        # A check that fails on a value of an unexpected type refuses the file too; the check's own
        # message would quote the file.
        blamed = [name for name in parameters if repr(name) in str(error)]
        raise ModelFileError(
            f"The file's parameters are not valid for {cls.__name__}{': ' if blamed else ''}"
            f"{', '.join(blamed)}."
        ) from None
    estimator._publish({**attributes, **attribute_of_payment(content["paid"])})
    return estimator


def _content(name: str, data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Parameters and state that a file of class `name` holds, with `paid`, and its arrays."""
    document, by_name = unpack(data)
    if document.pop("format", None) != FORMAT:
        raise ModelFileError("The file holds no model.")
    version = document.pop("version", None)
    if type(version) is not int or version != FORMAT_VERSION:
        raise ModelFileError(
            f"The file's format number is not {FORMAT_VERSION}, the only one that this version of "
            "sktensor_dp reads. Load the file with the version that wrote it."
        )
    saved = document.pop("class", None)
    if saved != name:
        is_ours = isinstance(saved, str) and saved in _class_names(ModelFileMixin)
        other = f"of {saved!r}" if is_ours else "of another class"
        raise ModelFileError(f"The file holds a model {other}, not of {name!r}.")
    keys = ["paid", "parameters", "state"]
    require(sorted(document) == keys, f"the document must have the keys {keys}")
    return document, Arrays(by_name)


def _class_names(cls: type) -> set[str]:
    """Names of a class and of all its subclasses."""
    return {cls.__name__}.union(*map(_class_names, cls.__subclasses__()))


def _parameter_names(cls: type) -> list[str]:
    """Names of the constructor's parameters that are saved."""
    return [name for name in inspect.signature(cls).parameters if name not in NOT_SAVED]
