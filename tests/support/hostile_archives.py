"""Files of format 1, zip archives, that somebody tampered with."""

import io
import json
import pickle
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from hostile_values import Mutation, Payload, Rng, cut, flipped, rewritten

from sktensor_dp.model_files.archives import (
    DOCUMENT,
    DTYPES,
    Array,
    _npy_header,
    archive_of,
    digest_of,
    unpack,
)

TRAILER = 71


def pack(document: Mapping[str, Any], arrays: Mapping[str, Array]) -> list[bytes]:
    """As versions that wrote archives did."""
    manifest: list[list[Any]] = []
    contents: list[bytes] = []
    for name, array in arrays.items():
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        descr = DTYPES[array.dtype.name]
        manifest.append([name + ".npy", array.dtype.name, bool(fortran), list(array.shape)])
        numbers = array.astype(descr, copy=False).tobytes("F" if fortran else "C")
        contents.append(_npy_header(descr, bool(fortran), array.shape) + numbers)
    text = json.dumps({**document, "arrays": manifest}, allow_nan=False, indent=1).encode()
    names = [DOCUMENT, *(entry[0] for entry in manifest)]
    unsigned = archive_of(list(zip(names, [text, *contents], strict=True)), b" " * TRAILER)
    return [signed(unsigned)]


def signed(data: bytes) -> bytes:
    """The file with a checksum that is right."""
    return data[:-TRAILER] + digest_of(data[:-TRAILER])


def zipped(members: list[tuple[Any, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of any members, with a right checksum."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of duplicate names
        with zipfile.ZipFile(buffer, "w", compression) as archive:
            for name, content in members:
                archive.writestr(name, content)
            archive.comment = b" " * TRAILER
    return signed(buffer.getvalue())


def members_of(data: bytes) -> list[tuple[Any, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(info, archive.read(info)) for info in archive.infolist()]


def flipped_and_signed(data: bytes, rng: Rng) -> bytes:
    return signed(flipped(data, rng))


def cut_and_signed(data: bytes, rng: Rng) -> bytes:
    return signed(cut(data, rng))


def swapped(data: bytes, rng: Rng) -> bytes:
    members = members_of(data)
    first, second = rng.integers(len(members), size=2)
    (a, x), (b, y) = members[first], members[second]
    members[first], members[second] = [((a, y), (b, x)), ((b, y), (a, x))][rng.integers(2)]
    return zipped(members)


def duplicated(data: bytes, rng: Rng) -> bytes:
    members = members_of(data)
    return zipped([*members, members[rng.integers(len(members))]])


def renamed(data: bytes, rng: Rng) -> bytes:
    members = members_of(data)
    place = rng.integers(len(members))
    name = ["../../evil", "/etc/passwd", "a\0b", "C:\\x", "", "é" * 99][rng.integers(6)]
    info = zipfile.ZipInfo("link")
    info.filename = name
    info.external_attr = 0o120777 << 16
    members[place] = (info, members[place][1])
    return zipped(members)


def bomb(data: bytes, rng: Rng) -> bytes:
    members = members_of(data)
    name = members[rng.integers(len(members))][0].filename
    return zipped([*members[:-1], (name, bytes(10**6))], zipfile.ZIP_DEFLATED)


def pickled(data: bytes, rng: Rng) -> bytes:
    """An array of objects, whose pickle runs code, in place of numbers."""
    members = members_of(data)
    place = int(rng.integers(len(members)))
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([Payload()], dtype=object), allow_pickle=True)
    content = [buffer.getvalue(), pickle.dumps(Payload())][rng.integers(2)]
    members[place] = (members[place][0].filename, content)
    return [zipped(members), content][int(rng.random() < 0.2)]


def relisted(data: bytes, rng: Rng) -> bytes:
    """Another type, order or shape declared for the same bytes."""
    members = members_of(data)
    document = json.loads(members[0][1])
    entry = document["arrays"][rng.integers(len(document["arrays"]))]
    kinds = ["object", "float64", "int64", "uint8", "O", "V8", 1, None]
    shapes = [[], [10**12], [2**31, 2**31], [0, 10**18], [0] * 33, [-1], [1.0], "3", [True], [0]]
    if rng.random() < 0.3:
        entry[1] = kinds[rng.integers(len(kinds))]
    elif rng.random() < 0.5:
        entry[3] = shapes[rng.integers(len(shapes))]
    elif rng.random() < 0.5:
        entry[2] = not entry[2]
    else:
        document["arrays"].reverse()
    return zipped([("model.json", json.dumps(document).encode()), *members[1:]])


def retyped(data: bytes, rng: Rng) -> bytes:
    """The document's text, no longer what a writer of JSON would give."""
    members = members_of(data)
    text = members[0][1]
    texts = [
        b"[" * 100_000, b'{"a":' * 100_000, text[: len(text) // 2], b"\xff" + text, b"null", b"",
        text.replace(b"{", b'{"class": 1, ', 1), text.replace(b"1", b"NaN", 1),
        text.replace(b"0.", b"1e999", 1), text.replace(b": 1", b": " + b"9" * 5000, 1),
        text.replace(b"\n", b" "), text + b" ", text.replace(b'"version": 1', b'"version": 2'),
    ]  # fmt: skip
    chosen = texts[rng.integers(len(texts))]
    return zipped([("model.json", chosen), *members[1:]])


FILES = Path(__file__).parents[1] / "model_files" / "files" / "v1"


def originals(models: dict[str, Any]) -> dict[str, bytes]:
    """Files that the library wrote when it wrote archives."""
    # Kinds of model that came later were never written so.
    files = {name: FILES / f"{name}.model" for name in models}
    return {name: file.read_bytes() for name, file in files.items() if file.exists()}


RAW: list[Mutation] = [flipped, cut, duplicated, renamed, bomb]
CRAFTED: list[Mutation] = [
    flipped_and_signed, cut_and_signed, swapped, pickled, relisted, retyped,
    *rewritten(unpack, pack),
]  # fmt: skip
