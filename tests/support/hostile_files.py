"""Model files, safetensors, that somebody tampered with."""

import copy
import hashlib
import json
import pickle
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sktensor_dp.model_files.container import pack, unpack

Rng = np.random.Generator
Mutation = Callable[[bytes, Rng], bytes]
# Where the document's checksum stands while the document is the last thing in the file.
CHECKSUM = slice(-66, -2)
DOCUMENT = "model.json"
DEEP: Any = 1
for _ in range(200):
    DEEP = [DEEP]
WILD = [
    None, True, False, -1, 0, 1, 2, 3, 2**31, 2**64, 10**400, 0.5, -0.0, 1e308, -1e308, 5e-324,
    "inf", "-inf", "nan", "", "\ud800", "a" * 100_000, [], {}, [[]], [None], DEEP, {"a": DEEP},
    {"tuple": []}, {"tuple": [1, 1]}, {"set": [[1]]}, {"float": "inf"}, {"float": "nan"},
    {"dtype": "object"}, {"dtype": "O"}, {"mapping": [[[1], 2]]}, {"mapping": [["counts", -1]]},
    {"array": [1, 10**30], "dtype": "int64"}, {"array": [[1]], "dtype": "object"},
    "__class__", "os.system", "PrivateSpectralLDA", "components_", "../../etc/passwd", "(?P<", "O",
    "i4,(10)f8", "{'names':['a']}", "filename", "gaussian_mixture", "slice", "(((a)", 1.5, -7,
]  # fmt: skip
NUMBERS = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, -1e308, 5e-324, 1e200, 2.0]


class Payload:
    """Its pickle would run code."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('code of a model file was run')",))


def any_of(values: Any, rng: Rng) -> Any:
    return values[rng.integers(len(values))]


def written(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return (Path(folder) / "model").read_bytes()


def signed(data: bytes) -> bytes:
    """The file with a checksum that is right."""
    if len(data) < 66:
        return data
    digest = hashlib.sha256(data[: CHECKSUM.start] + data[CHECKSUM.stop :]).hexdigest()
    return data[: CHECKSUM.start] + digest.encode() + data[CHECKSUM.stop :]


def parts_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and the bytes that it tells of."""
    (size,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def assembled(header: Any, body: bytes) -> bytes:
    """A file of any header, with a right checksum."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return signed(struct.pack("<Q", len(text)) + text + body)


def redocumented(data: bytes, text: bytes) -> bytes:
    """Another text in place of the document, with a right checksum of all."""
    header, body = parts_of(data)
    start = header[DOCUMENT]["data_offsets"][0]
    text = text.removesuffix(b'"}')[:-64].removesuffix(b'"sha256": "')
    text += b'"sha256": "' + b"0" * 64 + b'"}'
    header[DOCUMENT].update(shape=[len(text)], data_offsets=[start, start + len(text)])
    return assembled(header, body[:start] + text)


def with_array(data: bytes, array: np.ndarray, name: str = "extra") -> bytes:
    """One more array, in a file that is otherwise as the library would write it."""
    document, arrays = unpack(data)
    return b"".join(pack(document, {**arrays, name: array}))


# Damage of any file


def flipped(data: bytes, rng: Rng) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        changed[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return bytes(changed)


def cut(data: bytes, rng: Rng) -> bytes:
    start, stop = sorted(rng.integers(0, len(data) + 1, 2))
    kept = [data[:start], data[start:], data[:start] + data[stop:], data + data[start:stop]]
    return any_of(kept, rng)


def appended(data: bytes, rng: Rng) -> bytes:
    return data + any_of([b"\0", b" " * 8, data, pickle.dumps(Payload())], rng)


def replaced(data: bytes, rng: Rng) -> bytes:
    """Something else altogether."""
    with tempfile.TemporaryFile() as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model.json", data)
        file.seek(0)
        zipped = file.read()
    others = [b"", b"PK\3\4", b"PK\3\4" + data, zipped, pickle.dumps(Payload()), b"{}", data[8:]]
    return any_of(others, rng)


# Files with a checksum that is right


def flipped_and_signed(data: bytes, rng: Rng) -> bytes:
    return signed(flipped(data, rng))


def cut_and_signed(data: bytes, rng: Rng) -> bytes:
    return signed(cut(data, rng))


# Other values, in files that are otherwise as the library would write them


def keys_of(container: Any) -> list[Any]:
    return list(container) if isinstance(container, dict) else list(range(len(container)))


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in a document."""
    for key in keys_of(value):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from nodes(value[key])


def with_edited_document(data: bytes, rng: Rng) -> bytes:
    document, arrays = unpack(data)
    for _ in range(rng.integers(1, 4)):
        places = list(nodes(document))
        container, key = any_of(places, rng)
        wild, act = copy.deepcopy(any_of(WILD, rng)), rng.integers(4)
        if act == 0 and isinstance(container, dict):
            del container[key]
        elif act == 1 and isinstance(container, dict):
            names = ["__class__", "accountant", "_check", "n_components_", "fit", "core_"]
            container[any_of(names, rng)] = wild
        elif act == 2:
            other, place = any_of(places, rng)
            container[key] = copy.deepcopy(other[place]) if place in keys_of(other) else wild
        else:
            container[key] = wild
    try:
        return b"".join(pack(document, arrays))
    except (ValueError, RecursionError):  # a surrogate, or itself inside
        return data[:100]


def with_reshaped_arrays(data: bytes, rng: Rng) -> bytes:
    document, arrays = unpack(data)
    names = list(arrays)
    for _ in range(rng.integers(1, 3) if names else 0):
        name = any_of(names, rng)
        array = arrays[name]
        others = [
            array.T[None], array[:-1] if array.ndim else array, arrays[any_of(names, rng)],
            np.concatenate([array, array]) if array.ndim else array,
            array.astype(any_of(["float64", "int64", "uint8"], rng)), np.asfortranarray(array * 0),
        ]  # fmt: skip
        if rng.integers(4) == 0 and array.size and array.dtype == float:
            array.flat[rng.integers(array.size)] = any_of(NUMBERS, rng)
        else:
            arrays[name] = any_of(others, rng)
    return b"".join(pack(document, arrays))


RAW: list[Mutation] = [flipped, cut, appended, replaced]
CRAFTED: list[Mutation] = [
    flipped_and_signed, cut_and_signed, *[with_edited_document] * 3, *[with_reshaped_arrays] * 2,
]  # fmt: skip
