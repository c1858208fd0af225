"""Model files that somebody tampered with are refused, or make a whole model."""

import contextlib
import json
import os
import pickle
import re
import struct
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_files import (
    CRAFTED,
    RAW,
    Payload,
    any_of,
    assembled,
    parts_of,
    redocumented,
    signed,
    with_array,
    written,
)
from small_models import COUNTS, answers, fitted, fitted_with_tables

from sktensor_dp import ModelFileError, PrivateCountVectorizer, PrivateSpectralLDA
from sktensor_dp.model_files.container import LARGEST_TEXT, pack, unpack

INF = float("inf")
FILE = written(PrivateSpectralLDA(2, epsilon=INF, doc_topic_prior=0, random_state=0).fit(COUNTS))
WORDS = written(PrivateCountVectorizer(vocabulary={"cats": 1, "mice": 0}).fit(["cats"]))
MARK = "x7mark"


def refusal(data, folder, cls=PrivateSpectralLDA):
    """Message of the error; nothing of the file is in it, nor in what is shown with it."""
    path = folder / "model"
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        cls.load(path)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert MARK not in str(caught.value)
    assert len(str(caught.value)) < 400
    return str(caught.value)


def packed(arrays=None, **document):
    """A file as the library writes it, with other arrays or another document."""
    old, of = unpack(FILE)
    return b"".join(pack({**old, **document}, {**of, **(arrays or {})}))


def without(name):
    document, arrays = unpack(FILE)
    del arrays[name]
    return b"".join(pack(document, arrays))


def with_state(**values):
    return packed(state={**unpack(FILE)[0]["state"], **values})


def sharing_bytes():
    header, body = parts_of(FILE)
    header["topic_prior_"] = header["components_"]
    return assembled(header, body)


def header_of(change):
    """The file with another header: entries, or bytes in their place."""
    header, body = parts_of(FILE)
    return assembled(change(header), body)


def twice(header):
    # Another reader may take the first of two entries of a name; here both are equal.
    entry = b', "components_": ' + json.dumps(header["components_"]).encode() + b"}"
    return json.dumps(header).encode()[:-1] + entry


def text_of(change):
    header, body = parts_of(FILE)
    return redocumented(FILE, change(body[header["model.json"]["data_offsets"][0] :]))


def declaring(name, **entry):
    return header_of(lambda of: {**of, name: {**of[name], **entry}})


def sized(size):
    """The file with a header that says it is longer or shorter than it is."""
    return signed(struct.pack("<Q", size) + FILE[8:])


SIZES = [0, 1, len(FILE), len(FILE) - 8, 2**22 + 1, 100_000_000, 2**63, 2**64 - 1]
HEADERS = [
    b"[" * 100_000, b'{"a":' * 126 + b"1" + b"}" * 126, b"\xff", b"null", b"[]", b"{}",
    b'{"a": 1' + b"0" * 5000 + b"}", b'{"a": NaN}', b"{}" + b" " * 2**22,
]  # fmt: skip
EMPTY = {"dtype": "F64", "shape": [2**40, 0], "data_offsets": [0, 0]}
NO_VALUE = "The file's parameters are not valid for PrivateSpectralLDA"
DAMAGED, HEAD = "damaged, or holds no model", "not laid out as a model file"
NO_JSON = "not JSON as models are written in"
OTHER = "of another class, not of 'PrivateSpectralLDA'"
DECLARED: list[dict[str, Any]] = [
    {"shape": [2**40, 2**40]}, {"shape": [2**62, 0]}, {"data_offsets": [0, 2**63]},
    {"data_offsets": [0, 8]}, {"data_offsets": [8, 2**20]}, {"dtype": "F32"},
    {"dtype": "BF16"}, {"dtype": "object"}, {"shape": [-1]}, {"shape": MARK},
]  # fmt: skip
BOMBS = [
    b"[" * 100_000, b'{"a":' * 500_000, b" " * (LARGEST_TEXT + 1), b'{"a": 1' + b"0" * 10_000,
    b"null", b'{"format": NaN, ', b"\xff", b'{"x7mark": 1, "x7mark": 1, ', b'{"x7mark": "x7mark", ',
]  # fmt: skip
TOPICS = [
    (np.full((2, 7), np.nan), "finite"), (np.full((2, 7), np.inf), "finite"),
    (np.full((2, 7), -0.1), "none below 0"), (np.full((2, 7), 0.5), "sum to 1"),
    (np.full((2, 7), 1, dtype=np.int64), "type float64"),
    # Lengths are compared in the order of attributes: the first of them is the one believed.
    (np.full((2, 8), 0.125), "as long as the other parts that have its 'd'"),
    (np.full((1, 7), 1 / 7), "as long as the other parts that have its 'k'"),
    (np.full((2, 7, 1), 1 / 7), "dimensions"), (np.zeros((0, 7)), "'k'"),
]  # fmt: skip
GIVEN = unpack(FILE)[0]["parameters"]
NO_PARAMETERS = [("epsilon", MARK), ("epsilon", -1), ("n_components", 1.5), ("perturbation", MARK)]
WRONG = {
    **{f"{name} declared {entry}": (declaring(name, **entry), DAMAGED)
       for name in ("components_", "model.json") for entry in DECLARED},
    "arrays that share bytes": (sharing_bytes(), DAMAGED),
    "metadata": (header_of(lambda of: {"__metadata__": {MARK: MARK}, **of}), HEAD),
    "a long empty array": (header_of(lambda of: {**of, "extra": EMPTY}), HEAD),
    **{f"a header of {size} bytes": (sized(size), "") for size in SIZES},
    **{f"header {text[:9]!r}": (header_of(lambda _, text=text: text), "") for text in HEADERS},
    "an array twice": (header_of(twice), "holds no model"),
    "no document": (header_of(lambda of: {k: v for k, v in of.items() if k != "model.json"}), ""),
    "an array too few": (without("components_"), "components_ must name an array"),
    "an array too many": (with_array(FILE, np.zeros(3), MARK), "every array must belong"),
    **{f"topics {place}": (packed({"components_": array}), message)
       for place, (array, message) in enumerate(TOPICS)},
    **{f"bomb {place}": (redocumented(FILE, text + b'"sha256": "' + b"0" * 64 + b'"}'), "")
       for place, text in enumerate(BOMBS)},
    "a key twice": (text_of(lambda of: b'{"class": "PrivateSpectralLDA", ' + of[1:]), NO_JSON),
    "a long text": (text_of(lambda of: b" " * LARGEST_TEXT + of), NO_JSON),
    **{f"class {found!r:.9}": (packed(**{"class": found}), OTHER)
       for found in (MARK, "os.system", "__class__", None, 1, [MARK], "a" * 10**6)},
    "class of another": (packed(**{"class": "PrivateCPCompletion"}), "of 'PrivateCP.*, not of"),
    "state": (with_state(x7mark=1), "no parts but its own"),
    "a method": (with_state(_check_parameters=1), "no parts but its own"),
    "a key": (packed(x7mark=1), "must have the keys"),
    **{f"version {version!r}": (packed(version=version), "format number is not 1")
       for version in (0, 2, 10**9, True, 1.0, "1", None, MARK)},
    "format": (packed(format=MARK), "^The file holds no model.$"),
    **{f"{name}={value}": (packed(parameters={**GIVEN, name: value}), f"^{NO_VALUE}: {name}.$")
       for name, value in NO_PARAMETERS},
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_files_that_are_not_as_models_are_written(case, tmp_path):
    data, message = WRONG[case]
    assert re.search(message, refusal(data, tmp_path))


def test_damage_is_found_wherever_it_is(tmp_path):
    """In lengths, header, arrays, document and checksum."""
    for place in [*range(8), *range(8, len(WORDS), 7)]:
        damaged = bytearray(WORDS)
        damaged[place] ^= 1 << place % 8
        refusal(bytes(damaged), tmp_path, PrivateCountVectorizer)
    for place in range(0, len(WORDS), 20):
        refusal(WORDS[:place], tmp_path, PrivateCountVectorizer)


def test_a_checksum_that_is_not_of_the_rest(tmp_path):
    body = FILE.replace(b'"verbose": 0', b'"verbose": 5', 1)
    assert body != FILE
    for damaged in (FILE[:-3] + b"g" + FILE[-2:], body):
        assert "checksum" in refusal(damaged, tmp_path)
    (tmp_path / "model").write_bytes(signed(body))
    assert PrivateSpectralLDA.load(tmp_path / "model").verbose == 5


def test_memory_stays_in_proportion_to_the_file(tmp_path):
    """Below four times the file: itself, its arrays, and one array in another order."""
    d, path = 200_000, tmp_path / "model"
    topics = np.full((2, d), 1 / d)
    wide = {"components_": topics, "components_std_": topics / 2, "unigram_": topics[0]}
    path.write_bytes(packed(wide, state={**unpack(FILE)[0]["state"], "n_features_in_": d}))
    tracemalloc.start()
    try:
        PrivateSpectralLDA.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * path.stat().st_size


# Loading, under watch

MODULES = ("os.", "subprocess.", "socket.", "pickle.", "ctypes.", "shutil.")
FORBIDDEN = ("exec", "compile", "import", *MODULES)
watching, seen = False, set()


def is_forbidden(event: str, arguments: Any) -> bool:
    """Whether loading may not do what an audit event tells of."""
    written = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    return bool(event.startswith(FORBIDDEN) or written)


def watch(event: str, arguments: Any) -> None:
    if watching and is_forbidden(event, arguments):
        seen.add(event)


@pytest.fixture(scope="module")
def watched() -> Callable[[Any, Path], Any]:
    """Load under an audit hook, which no process takes off again, and which sleeps otherwise."""

    def load(cls: Any, path: Path) -> Any:
        global watching
        watching = True
        try:
            return cls.load(path)
        finally:
            watching = False

    sys.addaudithook(watch)
    return load


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    """Room for half a gigabyte: an allocation by what a file declares fails."""
    if not (statm := Path("/proc/self/statm")).exists():  # not on Linux
        yield
        return
    import resource

    used = int(statm.read_text("ascii").split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**29, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.fixture(scope="module")
def originals() -> dict[str, tuple[Any, bytes]]:
    """Every kind of model, and its file."""
    return {name: (model, written(model)) for name, model in [*fitted(), *fitted_with_tables()]}


def outcome(load: Any, model: Any, path: Path) -> str:
    """Refused, loaded, or what is wrong."""
    try:
        loaded = load(type(model), path)
    except ModelFileError:
        return "refused"
    except BaseException as error:
        return f"load: {type(error).__name__}: {error}"[:200]
    if not vars(loaded).keys() <= {*model.get_params(), *vars(model)}:
        return "more attributes than declared"
    try:
        loaded.save(path)
        with contextlib.suppress(ValueError, OSError):  # for data of its own kind it may be right
            answers(loaded)
    except BaseException as error:
        return f"use: {type(error).__name__}: {error}"[:200]
    return "loaded"


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_hostile_files_are_refused_or_whole(seed, originals, watched, tmp_path):
    """Loading runs nothing, allocates nothing a file merely declares, ends, and is complete."""
    rng, path, found = np.random.default_rng(seed), tmp_path / "model", []
    for model, data in originals.values():  # imports that a first load may bring
        path.write_bytes(data)
        assert outcome(watched, model, path) == "loaded"
    seen.clear()
    with little_memory():
        for place in range(250):
            name = list(originals)[place % len(originals)]
            model, original = originals[name]
            mutate = any_of([*RAW, *CRAFTED], rng)
            path.write_bytes(mutate(original, rng))
            unhurt, began = path.read_bytes() == original, time.process_time()
            ended = outcome(watched, model, path)
            # Seconds of the processor; twenty times what the slowest takes.
            assert time.process_time() - began < 2.0
            if ended == "loaded" and mutate in RAW and not unhurt:
                ended = "loaded though damaged"
            assert ended in ("refused", "loaded"), (name, mutate.__name__, ended)
            found.append(ended)
    assert seen == set()
    # Some changes make another model; most make none.
    assert 0 < found.count("loaded") < 50


NAMES = ["os.system", "builtins.exec", "__import__('antigravity')", "sktensor_dp.__main__:main"]
CODE = [*NAMES, *({"__reduce__": [name, ["exit 7"]]} for name in NAMES), {"call": NAMES}]
PICKLED = np.frombuffer(pickle.dumps(Payload()), np.uint8)


def naming_code(place: str, code: Any) -> bytes:
    """A file whose `place` names code to run, or holds a pickle that would."""
    if place == "the whole file":
        return PICKLED.tobytes()
    if place == "an array":
        return packed({"components_": PICKLED})
    if place in ("class", "format"):
        return packed(**{place: code})
    part, name = place.split(", ")
    return packed(**{part: {**unpack(FILE)[0][part], name: code}})


@pytest.mark.parametrize(
    "place",
    [
        "the whole file", "an array", "class", "format", "state, components_", "state, n_iter_",
        "state, __class__", "parameters, perturbation", "parameters, random_state",
        "parameters, accountant", "parameters, __init__",
    ],
)  # fmt: skip
def test_loading_imports_and_runs_nothing_that_a_file_names(place, watched, tmp_path):
    path, loaded = tmp_path / "model", {*sys.modules}
    path.write_bytes(FILE)
    PrivateSpectralLDA.load(path)  # imports of the library's own
    for code in CODE:
        path.write_bytes(naming_code(place, code))
        seen.clear()
        with pytest.raises(ModelFileError):
            watched(PrivateSpectralLDA, path)
        assert seen == set()
    assert {*sys.modules} - loaded <= {"safetensors", "safetensors.numpy"}


def test_the_watch_sees_code():
    assert is_forbidden("exec", ())
    assert is_forbidden("os.system", ())
    assert is_forbidden("open", ("y", "w", os.O_WRONLY | os.O_CREAT))
    assert not is_forbidden("open", ("x", "r", os.O_RDONLY))
