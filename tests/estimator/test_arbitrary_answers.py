"""Released values never raise: whatever noise makes of them, a fit ends with a model to be kept."""

import zlib
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from cases import AT_NIGHT, MODELS, Data, plain, quiet
from internals import answering

from sktensor_dp import (
    NotEnoughDataError,
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTuckerCompletion,
)
from sktensor_dp.queries.gradients import Jacobian

WIDE = Data(np.random.default_rng(3).poisson(0.3, (200, 60)))
CELLS = np.argwhere(np.random.default_rng(5).random((30, 8)) < 0.6)
TABLE = Data(CELLS, np.random.default_rng(6).normal(size=len(CELLS)))
MATRIX = {"rank": 2, "shape": (30, 8)}


def _more():
    """Recipes that small data and few steps do not lead to: models, options and data."""
    for prior, steps in product(("auto", 0), ("auto", 0)):
        given = {"n_refinements": steps, "doc_topic_prior": prior, "n_components": 3}
        yield f"topics, many words, {steps} steps, prior {prior}", "topics", given, WIDE
    for name in ("CP", "Tucker"):
        for epsilon in (0.5, 20.0):
            for more in ({}, {"unit_mode": 0}):
                given = {**MATRIX, **more, "epsilon": epsilon}
                yield f"{name}, {epsilon}, {more}", name, given, TABLE


ALL = {name: (name, {}, plain(name).draw()) for name in MODELS if "exact" not in name}
ALL |= {name: of for name, *of in _more()}


def arbitrary(value, rng):
    """Numbers of any size and sign in the shape of an answer."""
    sign, size = rng.choice([-1.0, 1.0]), 10.0 ** rng.uniform(-12, 12)
    drawn = rng.standard_normal(value.shape)
    kinds = [
        np.zeros_like(value),
        np.full_like(value, sign * 10.0 ** rng.uniform(-20, 20)),
        np.full_like(value, sign * 5e-324),
        drawn * size,
        -np.abs(drawn) * size,
        np.abs(drawn) * size,
        drawn * 10.0 ** rng.uniform(-12, 12, value.shape),
        np.where(drawn == drawn.max(initial=-9.0), sign * 10.0 ** rng.uniform(-30, 30), 0.0),
        sign * value * 10.0 ** rng.uniform(-3, 3),
    ]
    found = kinds[rng.integers(len(kinds))]
    symmetric = value.ndim == 2 and len(value) == len(value.T) and (value == value.T).all()
    return (found + found.T) / 2 if symmetric else found


@pytest.fixture
def told():
    """A session that answers with what a generator draws, in place of data and noise."""
    of = SimpleNamespace(rng=None)

    def answer(_, law, value, *rest):
        return arbitrary(np.asarray(value, dtype=float), of.rng)

    with answering(answer):
        yield of


def assert_in_domain(model, folder):
    """It is finite, within its bounds, and is read from a file as it was."""
    if hasattr(model, "save"):
        first, second = folder / "first", folder / "second"
        model.save(first)
        type(model).load(first).save(second)
        assert first.read_bytes() == second.read_bytes()
    for name, value in vars(model).items():
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, np.ndarray) and part.dtype.kind == "f":
                assert np.isfinite(part).all(), name
    if isinstance(model, PrivateSpectralLDA):
        assert (model.components_ >= 0).all()
        np.testing.assert_allclose(model.components_.sum(axis=1), 1.0)
        assert 0 <= model.components_std_.min() <= model.components_std_.max() <= 1
    if hasattr(model, "bounds"):
        low, high = model.bounds_
        predicted = model.predict(np.zeros((4, len(model.shape_)), int))
        assert ((predicted >= low) & (predicted <= high)).all()


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.nightly] * (name in AT_NIGHT)) for name in ALL],
)
def test_no_answer_ends_a_fit(name, told, seed, tmp_path):
    of, options, data = ALL[name]
    case = plain(of, payer="none")
    for draw in range(2):
        told.rng = np.random.default_rng([seed, draw, zlib.crc32(name.encode())])
        with quiet(), np.errstate(all="ignore"):
            try:
                model = case.fit(case.build(**options), data)
            # Of a vocabulary no word may remain, as its documentation says.
            except NotEnoughDataError:
                assert name.startswith("words")
                continue
            assert_in_domain(model, tmp_path)


@pytest.mark.parametrize("size", [1e70, 1e130, -1e300, np.inf, np.nan])
@pytest.mark.parametrize("kind", [PrivateCPCompletion, PrivateTuckerCompletion])
def test_no_released_factor_is_too_long_for_the_next_release(kind, size, monkeypatch, tmp_path):
    long = lambda self, mode: np.full((self.index_set.n_entries, 2), size)  # noqa: E731
    monkeypatch.setattr(Jacobian, "rows", long)
    model = kind(2, bounds=(-3, 3), perturbation="output", shape=(30, 8), epsilon=9.0)
    with quiet(), np.errstate(all="ignore"):
        assert_in_domain(model.fit(TABLE.X, TABLE.y), tmp_path)
