"""What somebody who tampers with a model file could put there, whatever the format."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Rng = np.random.Generator
Mutation = Callable[[bytes, Rng], bytes]
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


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in a document."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from nodes(value[key])


def edited(document: Any, rng: Rng) -> None:
    """Change some values of a document."""
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


def _keys(container: Any) -> Any:
    return container.keys() if isinstance(container, dict) else range(len(container))


def reshaped(arrays: dict[str, Any], rng: Rng) -> None:
    """Change numbers, shapes and types of some arrays."""
    names = list(arrays)
    for _ in range(rng.integers(1, 3) if names else 0):
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


def flipped(data: bytes, rng: Rng) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        changed[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return bytes(changed)


def cut(data: bytes, rng: Rng) -> bytes:
    start, stop = sorted(rng.integers(0, len(data) + 1, 2))
    kept = [data[:start], data[start:], data[:start] + data[stop:], data + data[start:stop]]
    return kept[rng.integers(4)]


def rewritten(unpack: Callable[..., Any], pack: Callable[..., Any]) -> list[Mutation]:
    """Other values, in files that are otherwise as the library would write them."""

    def with_edited_document(data: bytes, rng: Rng) -> bytes:
        document, arrays = unpack(data)
        edited(document, rng)
        try:
            return b"".join(pack(document, arrays))
        except (ValueError, RecursionError):  # a surrogate, or itself inside
            return data[:100]

    def with_reshaped_arrays(data: bytes, rng: Rng) -> bytes:
        document, arrays = unpack(data)
        with np.errstate(all="ignore"):
            reshaped(arrays, rng)
        return b"".join(pack(document, arrays))

    return [with_edited_document] * 3 + [with_reshaped_arrays] * 2


class Payload:
    """Its pickle would run code."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('code of a model file was run')",))
