"""The file of a model: a JSON document and arrays, in a zip archive of one possible form.

Nothing in the file is followed: no offset, name, path, type or compression. The reader
takes the document, works out which bytes the rest of the file must then be made of, and
compares. A file that differs in a single byte of its framing is refused, and with it
everything that zip and npy files can otherwise hold: links, paths, duplicates, members
that unpack to more than is there, pickles. Memory stays below three times
the file's size, and what a document of at most 4 MB takes as Python objects.
"""

import hashlib
import json
import math
import os
import re
import stat
import struct
import threading
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.exceptions import ModelFileError

__all__ = ["DTYPES", "pack", "read_file", "unpack", "write_file"]

Array = NDArray[Any]

# Little-endian wherever the file was written.
DTYPES = {"float64": "<f8", "int64": "<i8", "uint8": "|u1"}
LARGEST_FILE, LARGEST_DOCUMENT = 2**31 - 1, 2**22
MOST_MODES = 32

DOCUMENT = b"model.json"
MEMBER_NAME = re.compile(r"[A-Za-z0-9_]{1,60}\.npy")
DIGEST = b"sha256:"
DIGEST_SIZE = len(DIGEST) + 64

# Members are stored, never compressed. Time and mode are constants: the same model gives the
# same bytes, and the file does not tell when or where it was made.
MIDNIGHT_1980, VERSION, FILE_MODE = (0, 0x21), 20, 0o100644 << 16
LOCAL, CENTRAL, END = (
    struct.Struct("<4s5H3I2H"),
    struct.Struct("<4s6H3I5H2I"),
    struct.Struct("<4s4H2IH"),
)


def _local_header(name: bytes, content: Any) -> bytes:
    size = len(content)
    fields = (VERSION, 0, 0, *MIDNIGHT_1980, zlib.crc32(content), size, size, len(name), 0)
    return LOCAL.pack(b"PK\3\4", *fields) + name


def _directory(members: Sequence[tuple[bytes, Any, int]], start: int) -> bytes:
    """Central directory of (name, content, offset), and the end, whose comment is a digest."""
    entries = []
    for name, content, offset in members:
        size = len(content)
        fields = (zlib.crc32(content), size, size, len(name), 0, 0, 0, 0, FILE_MODE, offset)
        head = (3 << 8 | VERSION, VERSION, 0, 0, *MIDNIGHT_1980)
        entries.append(CENTRAL.pack(b"PK\1\2", *head, *fields) + name)
    size, count = sum(map(len, entries)), len(entries)
    end = END.pack(b"PK\5\6", 0, 0, count, count, size, start, DIGEST_SIZE)
    return b"".join([*entries, end])


def _npy_header(descr: str, fortran: bool, shape: Sequence[int]) -> bytes:
    """What precedes the numbers in an npy file of format 1.0."""
    sizes = "(" + "".join(f"{n}, " for n in shape).rstrip(" " if len(shape) == 1 else ", ") + ")"
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {sizes}, }}".encode()
    text += b" " * (-(11 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text


def pack(document: Mapping[str, Any], arrays: Mapping[str, Array]) -> list[bytes]:
    """Lay out a document and arrays as the parts of a file.

    Parameters
    ----------
    document : mapping
        JSON with finite numbers.
    arrays : mapping of str to ndarray
        By the names they get in the archive, without ``.npy``.

    Returns
    -------
    list of bytes

    Raises
    ------
    ValueError
        If the document or all together would exceed what a reader accepts.

    Examples
    --------
    >>> import numpy as np
    >>> document, arrays = unpack(b"".join(pack({"a": 1}, {"x": np.arange(3)})))
    >>> document, arrays["x"]
    ({'a': 1}, array([0, 1, 2]))
    """
    manifest: list[list[Any]] = []
    contents: list[bytes] = []
    for name, array in arrays.items():
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        descr = DTYPES[array.dtype.name]
        manifest.append([name + ".npy", array.dtype.name, bool(fortran), list(array.shape)])
        numbers = array.astype(descr, copy=False).tobytes("F" if fortran else "C")
        contents.append(_npy_header(descr, bool(fortran), array.shape) + numbers)
    text = json.dumps({**document, "arrays": manifest}, allow_nan=False, indent=1).encode()
    if len(text) > LARGEST_DOCUMENT:
        raise ValueError(
            f"The model's parameters and report take {len(text)} bytes, and a model file holds at "
            f"most {LARGEST_DOCUMENT} of them."
        )
    names = [DOCUMENT, *(entry[0].encode() for entry in manifest)]
    parts: list[bytes] = []
    members, offset = [], 0
    for name, content in zip(names, [text, *contents], strict=True):
        members.append((name, content, offset))
        parts += [_local_header(name, content), content]
        offset += LOCAL.size + len(name) + len(content)
    parts.append(_directory(members, offset) if offset < LARGEST_FILE else b"")
    if sum(map(len, parts)) + DIGEST_SIZE > LARGEST_FILE:
        raise ValueError(f"A model file holds at most {LARGEST_FILE} bytes; this one needs more.")
    parts.append(_digest(parts))
    return parts


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Take a file apart that ``pack`` laid out.

    Parameters
    ----------
    data : bytes
        The file.

    Returns
    -------
    document : dict
    arrays : dict of str to ndarray
        By name, without ``.npy``.

    Raises
    ------
    ModelFileError
        If it is anything else.
    """
    view = memoryview(data)
    if data[:4] != b"PK\3\4" or len(data) < LOCAL.size + len(DOCUMENT) + END.size + DIGEST_SIZE:
        raise ModelFileError("The file holds no model.")
    if data[-DIGEST_SIZE:] != _digest([view[:-DIGEST_SIZE]]):
        raise ModelFileError("The file is damaged: its checksum is not that of its content.")
    size = LOCAL.unpack_from(data)[8]
    start = LOCAL.size + len(DOCUMENT)
    if size > min(LARGEST_DOCUMENT, len(data) - start):
        raise ModelFileError("The file's document is larger than a model's can be.")
    document = _parsed(data[start : start + size])
    members: list[tuple[bytes, Any, int]] = [(DOCUMENT, view[start : start + size], 0)]
    arrays, offset = {}, start + size
    for entry in _manifest(document.pop("arrays", None)):
        name, dtype, fortran, shape = entry
        header = _npy_header(DTYPES[dtype], fortran, shape)
        begin = offset + LOCAL.size + len(name) + len(header)
        end = begin + math.prod(shape) * np.dtype(dtype).itemsize
        if end > len(data):
            raise ModelFileError("The file declares arrays larger than it is.")
        content = view[begin - len(header) : end]
        members.append((name.encode(), content, offset))
        if content[: len(header)] != header:
            raise ModelFileError(f"The array {name} is not of the type and shape declared.")
        arrays[name.removesuffix(".npy")] = _array(view[begin:end], dtype, fortran, shape)
        offset = end
    _check_framing(view[:-DIGEST_SIZE], members, offset)
    return document, arrays


def _digest(parts: Sequence[Any]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return DIGEST + digest.hexdigest().encode()


def _array(numbers: memoryview, dtype: str, fortran: bool, shape: Sequence[int]) -> Array:
    flat = np.frombuffer(numbers, dtype=DTYPES[dtype]).astype(dtype)
    # The order of a matrix decides in which order products add, so their last digits.
    return flat.reshape(shape, order="F" if fortran else "C")


def _check_framing(view: memoryview, members: Sequence[tuple[bytes, Any, int]], end: int) -> None:
    if view[end:] != _directory(members, end) or any(
        view[offset : offset + LOCAL.size + len(name)] != _local_header(name, content)
        for name, content, offset in members
    ):
        raise ModelFileError("The file is not laid out as a model file.")


def _parsed(text: bytes) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            raise ValueError("a key occurs twice")
        return result

    def refused(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON")

    try:
        document = json.loads(
            text.decode("utf-8"), object_pairs_hook=unique, parse_constant=refused
        )
    except (ValueError, RecursionError):
        # The parser's own message quotes the file.
        raise ModelFileError("The file's document is not JSON as models are written in.") from None
    if not isinstance(document, dict):
        raise ModelFileError("The file's document is no JSON object.")
    return document


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


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Content of a regular file of bounded size.

    Raises
    ------
    ModelFileError
        If it is no regular file or too large.
    OSError
        If it cannot be read.
    """
    status = os.stat(path)
    # A pipe or a device might never end.
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
        raise ModelFileError(
            f"A model is in a regular file of at most {LARGEST_FILE} bytes, and "
            f"{os.fspath(path)!r} is none."
        )
    with open(path, "rb") as file:
        return file.read(status.st_size)


def write_file(path: str | os.PathLike[str], parts: Sequence[bytes]) -> None:
    """Replace a file by new content, all of it or nothing.

    Parameters
    ----------
    path : path-like
        Where; a file there before is replaced once the new one is on the disk.
    parts : sequence of bytes
        Content.

    Raises
    ------
    OSError
        If it cannot be written; what was there before is as it was.
    """
    target = Path(path)
    writer = f"{os.getpid()}-{threading.get_ident()}"
    unfinished = target.with_name(f".{target.name}.{writer}.unfinished")
    file = open(unfinished, "xb")  # noqa: SIM115  (what is not ours is not removed below)
    try:
        with file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
