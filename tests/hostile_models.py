"""Model files that somebody tampered with, and a process that loads them under watch.

Run as a script it loads a number of such files and prints one line of JSON: how many were
refused and loaded, what went wrong, and what loading did that it never should.
"""

import contextlib
import copy
import io
import json
import os
import pickle
import resource
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from small_models import answers, fitted

from sktensor_dp import ModelFileError
from sktensor_dp.model_files.archive import _digest, pack, unpack

Rng = np.random.Generator
TRAILER = 71
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


def signed(data: bytes) -> bytes:
    """The file with a checksum that is right."""
    return data[:-TRAILER] + _digest([data[:-TRAILER]])


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


def flipped(data: bytes, rng: Rng) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        changed[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return bytes(changed)


def flipped_and_signed(data: bytes, rng: Rng) -> bytes:
    return signed(flipped(data, rng))


def cut(data: bytes, rng: Rng) -> bytes:
    start, stop = sorted(rng.integers(0, len(data) + 1, 2))
    kept = [data[:start], data[start:], data[:start] + data[stop:], data + data[start:stop]]
    result = kept[rng.integers(4)]
    return signed(result) if rng.random() < 0.5 and len(result) > TRAILER else result


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


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in a document."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from nodes(value[key])


def edited(data: bytes, rng: Rng) -> bytes:
    """Changed values, in a file that is otherwise as the library would write it."""
    document, arrays = unpack(data)
    document = copy.deepcopy(document)
    for _ in range(rng.integers(1, 4)):
        places = list(nodes(document))
        container, key = places[rng.integers(len(places))]
        wild = copy.deepcopy(WILD[rng.integers(len(WILD))])
        act = rng.integers(4)
        if act == 0 and isinstance(container, dict):
            del container[key]
        elif act == 1 and isinstance(container, dict):
            names = ["__class__", "accountant", "_check", "n_components_", "fit", "core_"]
            container[names[rng.integers(6)]] = wild
        elif act == 2:
            other, place = places[rng.integers(len(places))]
            container[key] = copy.deepcopy(other[place]) if place in _keys(other) else wild
        else:
            container[key] = wild
    try:
        return b"".join(pack(document, arrays))
    except (ValueError, RecursionError):  # a surrogate, or itself inside
        return data[:100]


def _keys(container: Any) -> Any:
    return container.keys() if isinstance(container, dict) else range(len(container))


def reshaped(data: bytes, rng: Rng) -> bytes:
    """Changed numbers, shapes and types, in a file as the library would write it."""
    document, arrays = unpack(data)
    names = list(arrays)
    for _ in range(rng.integers(1, 3)):
        name = names[rng.integers(len(names))]
        array = arrays[name]
        act = rng.integers(8)
        if act <= 1 and array.size and array.dtype == float:
            array.flat[rng.integers(array.size)] = NUMBERS[rng.integers(len(NUMBERS))]
        elif act == 2:
            arrays[name] = array.T[None]
        elif act == 3 and array.ndim:
            arrays[name] = array[:-1]
        elif act == 4 and array.ndim:
            arrays[name] = np.concatenate([array, array])
        elif act == 5:
            arrays[name] = array.astype(["float64", "int64", "uint8"][rng.integers(3)])
        elif act == 6:
            arrays[name] = arrays[names[rng.integers(len(names))]]
        else:
            arrays[name] = np.asfortranarray(array * 0)
    with np.errstate(all="ignore"):
        return b"".join(pack(document, arrays))


RAW: list[Callable[[bytes, Rng], bytes]] = [flipped, cut, duplicated, renamed, bomb]
CRAFTED: list[Callable[[bytes, Rng], bytes]] = [
    flipped_and_signed, swapped, pickled, relisted, retyped, edited, edited, edited,
    reshaped, reshaped,
]  # fmt: skip


FORBIDDEN = (
    "exec",
    "compile",
    "import",
    "os.",
    "subprocess.",
    "socket.",
    "pickle.",
    "ctypes.",
    "shutil.",
)
watching, seen = False, set()


def watch(event: str, arguments: Any) -> None:
    written = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if watching and (event.startswith(FORBIDDEN) or written):
        seen.add(event)


def load(cls: Any, path: Path) -> Any:
    global watching
    watching = True
    try:
        return cls.load(path)
    finally:
        watching = False


def outcome(model: Any, path: Path) -> str:
    """Refused, loaded, or what is wrong."""
    try:
        loaded = load(type(model), path)
    except ModelFileError:
        return "refused"
    except BaseException as error:
        return f"load: {type(error).__name__}: {error}"[:200]
    declared = {*type(model)._saved_state.record.parts, *model.get_params(), "_n_features_out"}
    if not vars(loaded).keys() <= declared:
        return "more attributes than declared"
    try:
        loaded.save(path)
        with contextlib.suppress(ValueError, OSError):  # for data of its own kind it may be right
            answers(loaded)
    except BaseException as error:
        return f"use: {type(error).__name__}: {error}"[:200]
    return "loaded"


def main(count: int, seed: int) -> None:
    models = dict(fitted())
    report: dict[str, Any] = {"refused": 0, "loaded": 0, "wrong": [], "slowest": 0.0}
    rng = np.random.default_rng(seed)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        originals = {}
        for name, model in models.items():
            model.save(path)
            originals[name] = path.read_bytes()
            load(type(model), path)  # imports that a first load may bring
        # Room for a few hundred megabytes: an allocation by what a file declares fails.
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**29, used + 2**29))
        sys.addaudithook(watch)
        for index in range(count):
            name = list(models)[index % len(models)]
            mutate = [*RAW, *CRAFTED][rng.integers(len(RAW) + len(CRAFTED))]
            data = mutate(originals[name], rng)
            path.write_bytes(data)
            began = time.perf_counter()
            found = outcome(models[name], path)
            report["slowest"] = max(report["slowest"], time.perf_counter() - began)
            if found == "loaded" and mutate in RAW and data != originals[name]:
                found = "loaded though damaged"
            if found in ("refused", "loaded"):
                report[found] += 1
            else:
                report["wrong"].append([name, mutate.__name__, found])
    print(json.dumps({**report, "forbidden": sorted(seen)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
