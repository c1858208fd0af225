"""The file of a model: arrays and a JSON document among them, in the safetensors format.

The reader refuses gaps, overlaps and sizes beyond the file. The document ends in a SHA-256 of all
else. Memory stays below three times the file's size, and what at most 32 MB of JSON take.
"""

import hashlib
import json
import math
import os
import stat
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.exceptions import ModelFileError
from sktensor_dp.privacy.statement import strict_json

LARGEST_FILE, LARGEST_TEXT = 2**31 - 1, 2**24
LARGEST_ARRAYS = LARGEST_FILE - 2 * LARGEST_TEXT - 8
# Entry that holds the JSON document. Arrays cannot have this name, as theirs have no dot.
DOCUMENT = "model.json"
# Placeholder for the checksum, the last value of the document.
ZEROS = "0" * 64
END = len(b'"}')


# Strings that stand for numbers which JSON lacks.
NOT_FINITE = {"inf": math.inf, "-inf": -math.inf}


def require(condition: object, wanted: str) -> None:
    """Raise ModelFileError unless the condition holds; `wanted` says what the file must have."""
    if not condition:
        raise ModelFileError(
            f"In the model's file, {wanted}: did another version of sktensor_dp write it?"
        )


class Arrays:
    """Arrays of a model file by name, to be written or just read; `used` has the names taken."""

    def __init__(self, by_name: Mapping[str, NDArray[Any]] | None = None) -> None:
        self.by_name = dict(by_name or {})
        self.used: set[str] = set()

    def add(self, array: NDArray[np.generic], where: str) -> str:
        """Keep an array to be written and return its name, made of the attribute's name `where`."""
        name = start = "".join(c if c.isalnum() else "_" for c in where)[:50]
        while name in self.by_name:
            name = f"{start}_{len(self.by_name)}"
        self.by_name[name] = array
        return name

    def take(self, name: Any, where: str) -> NDArray[Any]:
        """Array that the file calls `name`, marked as used; ModelFileError for an unknown name."""
        exists = isinstance(name, str) and name in self.by_name
        require(exists, f"{where} must name an array of the file")
        self.used.add(name)
        return self.by_name[name]


def pack(document: Mapping[str, object], arrays: Mapping[str, NDArray[np.generic]]) -> list[bytes]:
    """Bytes of a model file, in pieces to be written in order; equal content gives equal bytes."""
    # The order in memory determines the order of additions in products, and so their last digits.
    fortran = [name for name, array in arrays.items() if array.flags.fnc]  # F-, not C-contiguous
    content = {**document, "fortran": fortran, "sha256": ZEROS}
    text = json.dumps(content, allow_nan=False).encode()
    size = sum(array.nbytes for array in arrays.values())
    if len(text) > LARGEST_TEXT or size > LARGEST_ARRAYS:
        raise ValueError(
            f"A model file holds at most {LARGEST_TEXT} bytes of parameters and report and "
            f"{LARGEST_ARRAYS} of arrays; these take {len(text)} and {size}."
        )
    from safetensors.numpy import save

    tensors = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    tensors[DOCUMENT] = np.frombuffer(text, np.uint8)
    data = save(tensors)
    _, at = _header(data)  # where ZEROS stand, to be replaced by the checksum
    return [data[:at], _digest(data, at), data[at + len(ZEROS) :]]


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[np.generic]]]:
    """JSON document and arrays by name of a file that `pack` laid out; else ModelFileError."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        header, at = _header(data)
        arrays = load(data)
    except (SafetensorError, ValueError, LookupError, TypeError):
        raise ModelFileError("The file is damaged, or holds no model.") from None
    if data[at : at + len(ZEROS)] != _digest(data, at):
        raise ModelFileError("The file is damaged: its checksum is not that of its content.")
    # Refuse metadata, and axes longer than the file, of empty arrays too.
    sizes = [math.prod(n for n in array.shape if n) for array in arrays.values()]
    if header.keys() != arrays.keys() or max(sizes) > len(data):
        raise ModelFileError("The file is not laid out as a model file.")
    document = parsed(arrays.pop(DOCUMENT).tobytes())
    document.pop("sha256", None)
    fortran = document.pop("fortran", None)
    if not isinstance(fortran, list) or not all(isinstance(name, str) for name in fortran):
        raise ModelFileError("The file's list of arrays in columns is malformed.")
    for name in arrays.keys() & fortran:
        arrays[name] = np.asarray(arrays[name], order="F")
    return document, arrays


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    """Header of the safetensors format, and the offset of the checksum in the file."""
    # Eight bytes of its length, the header, then arrays. One of these is the document, which ends
    # with the checksum and `END` characters of JSON.
    start = 8 + int.from_bytes(data[:8], "little")
    # At most one byte more than allowed, so that `parsed` refuses a header that is too long.
    header = parsed(data[8 : min(start, LARGEST_TEXT + 9)])
    return header, start + header[DOCUMENT]["data_offsets"][1] - END - len(ZEROS)


def _digest(data: bytes, at: int) -> bytes:
    """SHA-256 of the file without its own 64 characters from `at` on, as hexadecimal bytes."""
    view = memoryview(data)
    digest = hashlib.sha256(view[:at])
    digest.update(view[at + len(ZEROS) :])
    return digest.hexdigest().encode()


def parsed(text: bytes) -> dict[str, Any]:
    """JSON object in `text`; ModelFileError for other content, a repeated key or NaN."""
    try:
        document = strict_json(text, LARGEST_TEXT)
    except ValueError:
        raise ModelFileError("The file's document is not JSON as models are written in.") from None
    if not isinstance(document, dict):
        raise ModelFileError("The file's document is no JSON object.")
    return document


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Content of a regular file of at most LARGEST_FILE bytes; else ModelFileError."""
    status = os.stat(path)
    # Reading a pipe or a device might never end.
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
        raise ModelFileError(
            f"A model must be in a regular file of at most {LARGEST_FILE} bytes; "
            f"{os.fspath(path)!r} is not one."
        )
    with open(path, "rb") as file:
        return file.read(status.st_size)


def write_file(path: str | os.PathLike[str], parts: Sequence[bytes]) -> None:
    """Write a file, or replace it; it appears whole or not at all, even if writing fails.

    A folder that does not exist is made: what the file is to hold was paid for.
    """
    # Resolve links. Refuse targets that are no regular files, such as pipes, which replacing would
    # destroy.
    target = Path(os.path.realpath(path))
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    if mode is not None and not target.is_file():
        raise OSError(f"{os.fspath(path)!r} is no regular file; it was left as it is.")
    target.parent.mkdir(parents=True, exist_ok=True)
    writer = f"{os.getpid()}-{threading.get_ident()}"
    unfinished = target.with_name(f".{target.name}.{writer}.unfinished")
    file = open(unfinished, "xb")  # noqa: SIM115  (what is not ours is not removed below)
    try:
        with file:
            if mode is not None:
                os.chmod(unfinished, mode)
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
