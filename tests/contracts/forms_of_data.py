"""Forms of one data set for replay: true answers, and all that a fit shows, are the same.

A form is a method to fit by and what it is passed.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from contracts import ways_of_completions as completions
from contracts import ways_of_samples as samples
from contracts.neighbours import TEXTS, components_model, stream_model, topics_model, words_model
from contracts.replay_rows import Pair, Rng, Row


def passed(estimator: Any, form: tuple[str, tuple[Any, ...], dict[str, Any]]) -> Any:
    method, args, more = form
    getattr(estimator, method)(*args, **more)
    # Names of columns are public, and only some containers have them.
    vars(estimator).pop("feature_names_in_", None)
    return estimator


def with_zeros_and_duplicates(X: np.ndarray, rng: Rng) -> sp.coo_matrix:
    """Entries in any order, some of them in two parts, and zeros that are written out."""
    rows, columns = np.nonzero(X)
    values = X[rows, columns]
    part = np.floor(values / 2)
    zeros = rng.integers(0, X.shape, (40, 2))
    stated = np.where(X[tuple(zeros.T)] == 0)[0]
    order = rng.permutation(2 * len(values) + len(stated))
    data = np.concatenate([values - part, part, np.zeros(len(stated))])[order]
    places = [np.concatenate([a, a, b[stated]])[order]
              for a, b in zip((rows, columns), zeros.T, strict=True)]  # fmt: skip
    return sp.coo_matrix((data, places), X.shape)


def unsorted(X: np.ndarray, rng: Rng) -> sp.csr_matrix:
    found = sp.csr_matrix(X)
    for start, stop in zip(found.indptr[:-1], found.indptr[1:], strict=True):
        order = start + rng.permutation(stop - start)
        found.indices[start:stop], found.data[start:stop] = found.indices[order], found.data[order]
    found.has_sorted_indices = False
    return found


def _chunks(X: np.ndarray, size: int) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    chunks = [X[start : start + size] for start in range(0, len(X), size)]
    return "fit_chunks", (chunks,), {"n_samples": len(X), "n_features": X.shape[1]}


FORMS: dict[str, Callable[[np.ndarray, Rng], Any]] = {
    "float32": lambda X, rng: X.astype(np.float32),
    "integers": lambda X, rng: X.astype(np.int32),
    "small integers": lambda X, rng: X.astype(np.int8),
    "columns first": lambda X, rng: np.asfortranarray(X),
    "view": lambda X, rng: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "read only": lambda X, rng: np.frombuffer(X.tobytes()).reshape(X.shape),
    "list": lambda X, rng: X.tolist(),
    "frame": lambda X, rng: pd.DataFrame(X, columns=[f"w{i}" for i in range(X.shape[1])]),
    "csr": lambda X, rng: sp.csr_matrix(X),
    "csr array, long indices": lambda X, rng: sp.csr_array(
        (sp.csr_array(X).data, *(sp.csr_array(X).nonzero(),)), shape=X.shape),
    "csc": lambda X, rng: sp.csc_matrix(X),
    "zeros and duplicates": with_zeros_and_duplicates,
    "unsorted": unsorted,
    "other order of rows": lambda X, rng: X[rng.permutation(len(X))],
}  # fmt: skip


def forms(counts: bool, form: str, rng: Rng) -> Pair:
    X = samples.few_columns(rng, counts)
    X = X if counts else np.round(8 * X) / 8 if "integers" not in form else np.round(X)
    if form in ("chunks", "long chunks"):
        return ("fit", (X,), {}), _chunks(X, 7 if form == "chunks" else 150)
    return ("fit", (X,), {}), ("fit", (FORMS[form](X, rng),), {})


def slices_in_form(form: str, rng: Rng) -> Pair:
    places = rng.permutation(np.prod(completions.SHAPE))[:120]
    X = np.column_stack(np.unravel_index(places, completions.SHAPE))
    y = np.round(4 * completions.components(rng, X)) / 4
    order, T = rng.permutation(len(X)), np.full(completions.SHAPE, np.nan)
    T[tuple(X.T)] = y
    mask = ~np.isnan(T)
    ways = {
        "order": ("fit", (X[order], y[order]), {}),
        "small integers": ("fit", (X.astype(np.uint8), y.astype(np.float32)), {}),
        "floats": ("fit", (X.astype(float), y), {}),
        "list": ("fit", (X.tolist(), y.tolist()), {}),
        "frame": ("fit", (pd.DataFrame(X), pd.Series(y)), {}),
        "tensor": ("fit_tensor", (T,), {}),
        "mask": ("fit_tensor", (np.where(mask, T, 9.0), mask), {}),
    }
    return ("fit", (X, y), {}), ways[form]


def texts_in_form(form: str, rng: Rng) -> Pair:
    texts = [TEXTS[place] for place in rng.integers(3, size=180)]
    ways = {
        "tuple": tuple(texts), "array": np.array(texts), "objects": np.array(texts, object),
        "series": pd.Series(texts), "order": [texts[i] for i in rng.permutation(180)],
    }  # fmt: skip
    return ("fit", (texts,), {}), ("fit", (ways[form],), {})


def _same(name: str, build: Any, pair: Any, place: int = 0) -> Row:
    return Row(f"{name}, same data", build, passed, pair, relation="same", place=place)


CUT = [*FORMS, "chunks", "long chunks"]
SAME = [
    *(_same(f"topics, {form}", partial(topics_model, {}), partial(forms, True, form), place)
      for place, form in enumerate(CUT)),
    *(_same(f"samples, {form}", partial(components_model, {}), partial(forms, False, form), place)
      for place, form in enumerate(CUT)),
    *(_same(f"stream, {form}", partial(stream_model, {}), partial(forms, False, form), place)
      for place, form in enumerate(FORMS) if form != "other order of rows"),
    *(_same(f"slices, {form}", completions.slices_model, partial(slices_in_form, form), place)
      for place, form in enumerate(
          ["order", "small integers", "floats", "list", "frame", "tensor", "mask"])),
    *(_same(f"words, {form}", partial(words_model, {}), partial(texts_in_form, form))
      for form in ("tuple", "array", "objects", "series", "order")),
]  # fmt: skip
