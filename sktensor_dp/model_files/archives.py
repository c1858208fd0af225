"""Reads files of format 1, a zip archive of one possible form.

Nothing else knows of them: once nobody has such files, this module can go, with its line in
``saving`` and its tests.

Nothing in the file is followed: no offset, name, path, type or compression. The reader
takes the document, works out which bytes the rest of the file must then be made of, and
compares. A file that differs in a single byte of its framing is refused, and with it
everything that zip and npy files can otherwise hold: links, paths, duplicates, members
that unpack to more than is there, pickles.
"""

import hashlib
import io
import math
import re
import struct
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.exceptions import ModelFileError
from sktensor_dp.model_files.container import LARGEST_FILE, LARGEST_TEXT, parsed
from sktensor_dp.model_files.fields import require

START = b"PK\3\4"

Array = NDArray[Any]

# Little-endian wherever the file was written.
DTYPES = {"float64": "<f8", "int64": "<i8", "uint8": "|u1"}
MOST_MODES = 32

DOCUMENT = "model.json"
MEMBER_NAME = re.compile(r"[A-Za-z0-9_]{1,60}\.npy")
DIGEST = b"sha256:"
DIGEST_SIZE = len(DIGEST) + 64

# Members are stored, never compressed. Time and mode are constants: the same model gives the
# same bytes, and the file does not tell when or where it was made.
UNIX, FILE_MODE = 3, 0o100644 << 16
LOCAL = struct.Struct("<4s5H3I2H")


def archive_of(members: Sequence[tuple[str, Any]], comment: bytes) -> bytes:
    """The only archive that has these members, by their names and contents, and a comment."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.comment = comment
        for name, content in members:
            member = zipfile.ZipInfo(name)
            member.create_system, member.external_attr = UNIX, FILE_MODE
            archive.writestr(member, content)
    return whole.getvalue()


def _npy_header(descr: str, fortran: bool, shape: Sequence[int]) -> bytes:
    """What precedes the numbers in an npy file of format 1.0."""
    sizes = "(" + "".join(f"{n}, " for n in shape).rstrip(" " if len(shape) == 1 else ", ") + ")"
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {sizes}, }}".encode()
    text += b" " * (-(11 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text


def read_archive(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Document, as of format 2, and arrays of an archive, or ModelFileError."""
    document, arrays = unpack(data)
    if type(document.get("version")) is not int or document["version"] != 1:
        raise ModelFileError("The file holds no model.")
    state = document.get("state")
    stream = state.get("_stream") if isinstance(state, dict) else None
    if isinstance(stream, dict):
        # A stream held the report beside the model, which has one of its own.
        stream.pop("report", None)
    if isinstance(stream, dict) and isinstance(stream.get("method"), dict):
        # Parts of a power method were named after its private attributes.
        renamed = {name.removeprefix("_"): part for name, part in stream["method"].items()}
        require(len(renamed) == len(stream["method"]), "a method must have no parts but its own")
        stream["method"] = renamed
    return {**document, "version": 2}, arrays


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Document and arrays of an archive as they are, or ModelFileError."""
    view = memoryview(data)
    if data[:4] != START or len(data) < LOCAL.size + len(DOCUMENT) + DIGEST_SIZE:
        raise ModelFileError("The file holds no model.")
    digest = digest_of(view[:-DIGEST_SIZE])
    if data[-DIGEST_SIZE:] != digest:
        raise ModelFileError("The file is damaged: its checksum is not that of its content.")
    size = LOCAL.unpack_from(data)[8]
    start = LOCAL.size + len(DOCUMENT)
    if size > min(LARGEST_TEXT, len(data) - start):
        raise ModelFileError("The file's document is larger than a model's can be.")
    document = parsed(data[start : start + size])
    members = [(DOCUMENT, view[start : start + size])]
    arrays, offset = {}, start + size
    for entry in _manifest(document.pop("arrays", None)):
        name, dtype, fortran, shape = entry
        header = _npy_header(DTYPES[dtype], fortran, shape)
        begin = offset + LOCAL.size + len(name) + len(header)
        end = begin + math.prod(shape) * np.dtype(dtype).itemsize
        if end > len(data):
            raise ModelFileError("The file declares arrays larger than it is.")
        content = view[begin - len(header) : end]
        members.append((name, content))
        if content[: len(header)] != header:
            raise ModelFileError("An array is not of the type and shape declared.")
        arrays[name.removesuffix(".npy")] = _array(view[begin:end], dtype, fortran, shape)
        offset = end
    if archive_of(members, digest) != data:
        raise ModelFileError("The file is not laid out as a model file.")
    return document, arrays


def digest_of(content: Any) -> bytes:
    """What an archive ends in, by what comes before."""
    return DIGEST + hashlib.sha256(content).hexdigest().encode()


def _array(numbers: memoryview, dtype: str, fortran: bool, shape: Sequence[int]) -> Array:
    flat = np.frombuffer(numbers, dtype=DTYPES[dtype]).astype(dtype)
    # The order of a matrix decides in which order products add, so their last digits.
    return flat.reshape(shape, order="F" if fortran else "C")


def _manifest(entries: Any) -> list[tuple[str, str, bool, tuple[int, ...]]]:
    """Names, types, orders and shapes of the arrays that the file has to hold."""
    result: list[tuple[str, str, bool, tuple[int, ...]]] = []
    for entry in entries if isinstance(entries, list) else [None]:
        if not (isinstance(entry, list) and len(entry) == 4):
            raise ModelFileError("The file's list of arrays is malformed.")
        name, dtype, fortran, shape = entry
        named = isinstance(name, str) and MEMBER_NAME.fullmatch(name) is not None
        typed = isinstance(dtype, str) and dtype in DTYPES and isinstance(fortran, bool)
        sized = (
            isinstance(shape, list)
            and len(shape) <= MOST_MODES
            and all(type(n) is int and 0 <= n <= LARGEST_FILE for n in shape)
            # Of an empty array the other lengths are not backed by numbers in the file.
            and math.prod(n for n in shape if n) <= LARGEST_FILE
        )
        if not (named and typed and sized):
            raise ModelFileError("The file's list of arrays is malformed.")
        result.append((name, dtype, fortran, tuple(shape)))
    if len({entry[0] for entry in result}) < len(result):
        raise ModelFileError("The file lists an array twice.")
    return result
