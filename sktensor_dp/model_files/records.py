"""Objects other than models in files of the same format: declared parts, and no code."""

import os
from typing import Any

from sktensor_dp.exceptions import ModelFileError
from sktensor_dp.model_files.container import pack, read_file, unpack, write_file
from sktensor_dp.model_files.fields import Arrays, Record, require

FORMAT, FORMAT_VERSION = "sktensor_dp record", 1


def save_record(path: str | os.PathLike[str], record: Record, value: Any, kind: str) -> None:
    """Write the declared parts of an object."""
    arrays = Arrays()
    state = record.write(value, arrays, "")
    document = {"format": FORMAT, "version": FORMAT_VERSION, "class": kind, "state": state}
    write_file(path, pack(document, arrays.by_name))


def load_record(path: str | os.PathLike[str], record: Record, kind: str) -> Any:
    """The object that `save_record` wrote, or ModelFileError."""
    document, by_name = unpack(read_file(path))
    if document.get("format") != FORMAT or document.get("class") != kind:
        raise ModelFileError(f"The file holds no {kind}.")
    if document.get("version") != FORMAT_VERSION:
        raise ModelFileError(
            f"The file's format number is not {FORMAT_VERSION}, the only one that this version of "
            "sktensor_dp reads. Load the file with the version that wrote it."
        )
    arrays = Arrays(by_name)
    value = record.read(document.get("state"), arrays, "")
    require(arrays.used == by_name.keys(), "every array must belong to a part")
    return value
