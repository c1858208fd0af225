"""A process that loads model files that somebody tampered with, under watch.

Run as a script it reads seeds, and for each of them loads a number of such files and prints
one line of JSON: how many were refused and loaded, what went wrong, and what loading did that it
never should.
"""

import contextlib
import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import hostile_files
import numpy as np
from small_models import answers, fitted, fitted_with_tables

from sktensor_dp import ModelFileError

MODULES = ("os.", "subprocess.", "socket.", "pickle.", "ctypes.", "shutil.")
FORBIDDEN = ("exec", "compile", "import", *MODULES)
STATE: dict[type, set[str]] = {}  # names of attributes that fits of a class leave behind
watching, seen = False, set()


def is_forbidden(event: str, arguments: Any) -> bool:
    """Whether loading may not do what an audit event tells of."""
    written = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    return bool(event.startswith(FORBIDDEN) or written)


def watch(event: str, arguments: Any) -> None:
    if watching and is_forbidden(event, arguments):
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
    if not vars(loaded).keys() <= {*model.get_params(), *STATE[type(model)]}:
        return "more attributes than declared"
    try:
        loaded.save(path)
        with contextlib.suppress(ValueError, OSError):  # for data of its own kind it may be right
            answers(loaded)
    except BaseException as error:
        return f"use: {type(error).__name__}: {error}"[:200]
    return "loaded"


def report(
    models: dict[str, Any], originals: dict[str, bytes], path: Path, count: int, seed: int
) -> dict[str, Any]:
    """What came of so many files, drawn by a seed."""
    result: dict[str, Any] = {"refused": 0, "loaded": 0, "wrong": [], "slowest": 0.0}
    mutations, rng = [*hostile_files.RAW, *hostile_files.CRAFTED], np.random.default_rng(seed)
    seen.clear()
    for index in range(count):
        name = list(originals)[index % len(originals)]
        mutate = hostile_files.any_of(mutations, rng)
        data = mutate(originals[name], rng)
        path.write_bytes(data)
        began = time.process_time()
        found = outcome(models[name], path)
        result["slowest"] = max(result["slowest"], time.process_time() - began)
        if found == "loaded" and mutate in hostile_files.RAW and data != originals[name]:
            found = "loaded though damaged"
        if found in ("refused", "loaded"):
            result[found] += 1
        else:
            result["wrong"].append([name, mutate.__name__, found])
    return {**result, "forbidden": sorted(seen)}


def main(count: int) -> None:
    models = dict([*fitted(), *fitted_with_tables()])
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        originals = {name: hostile_files.written(model) for name, model in models.items()}
        for name, data in originals.items():  # imports that a first load may bring
            path.write_bytes(data)
            STATE.setdefault(type(models[name]), set()).update(vars(models[name]))
            models[name] = load(type(models[name]), path)
        # Room for a few hundred megabytes: an allocation by what a file declares fails.
        if (statm := Path("/proc/self/statm")).exists():  # on Linux
            import resource

            used = int(statm.read_text("ascii").split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 2**29, used + 2**29))
        sys.addaudithook(watch)
        for seed in sys.stdin:
            print(json.dumps(report(models, originals, path, count, int(seed))), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
