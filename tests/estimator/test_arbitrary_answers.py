"""Released values never raise: whatever noise makes of them, a fit ends with a finite model."""

import zlib
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from internals import answering
from ways_to_fit import COUNTS, SAMPLES, WAYS, Way, X, Y, quiet

from sktensor_dp import (
    NotEnoughDataError,
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)
from sktensor_dp.queries.gradients import Jacobian

WIDE = np.random.default_rng(3).poisson(0.3, (200, 60)).astype(float)
CELLS = np.argwhere(np.random.default_rng(5).random((30, 8)) < 0.6)
VALUES = np.random.default_rng(6).normal(size=len(CELLS))
PERSONS = {"unit_mode": 0, "shape": (30, 8)}


def _fit(estimator, data):
    return estimator.fit(*data) if isinstance(data, tuple) else estimator.fit(data)


def _more_ways():
    """Recipes that small data and few steps do not lead to."""
    for prior, steps in product(("auto", 0), ("auto", 0)):
        for data, kind in ((COUNTS, "few"), (WIDE, "many")):
            options = {"n_refinements": steps, "doc_topic_prior": prior, "n_components": 3}
            name = f"topics, {kind} words, {steps} steps, prior {prior}"
            yield name, Way(PrivateSpectralLDA, options, data, _fit)
    moments = {"raw": 0, "gaussian_mixture": 1e-6}
    for moment, perturbation in product(moments, ("whitened_tensor", "moment_tensor")):
        options = {"moment": moment, "perturbation": perturbation, "n_components": 4}
        name = f"components, {moment}, {perturbation}"
        options["delta"] = moments[moment]
        yield name, Way(PrivateTensorPowerMethod, options, SAMPLES, _fit)
    for kind in (PrivateCPCompletion, PrivateTuckerCompletion):
        name = kind.__name__.removeprefix("Private")
        for epsilon in (0.5, 20.0):
            options = {"epsilon": epsilon, "rank": 2}
            yield f"{name}, {epsilon}", Way(kind, options, (CELLS, VALUES), _fit)
            persons = {**options, **PERSONS}
            yield f"{name}, persons, {epsilon}", Way(kind, persons, (CELLS, VALUES), _fit)
        options = {"perturbation": "gradient", "rank": 2}
        yield f"{name}, many gradients", Way(kind, options, (X, Y), _fit)


ALL = {**WAYS, **dict(_more_ways())}


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


def assert_in_domain(model):
    """Assert that what a fit exposes is finite, and in the range that is documented."""
    for name, value in vars(model).items():
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, np.ndarray) and part.dtype.kind == "f":
                assert np.isfinite(part).all(), name
    if isinstance(model, PrivateSpectralLDA):
        assert (model.components_ >= 0).all()
        np.testing.assert_allclose(model.components_.sum(axis=1), 1.0)
    if getattr(model, "moment", "") == "gaussian_mixture":
        longest = getattr(model, "data_norm_", model.data_norm)
        assert np.linalg.norm(model.components_, axis=1).max() <= longest * (1 + 1e-12)
        most = longest**2 / model.n_features_in_ * (1 + 1e-12)
        assert ((model.covariances_ > 0) & (model.covariances_ <= most)).all()
        assert model.weights_.sum() == pytest.approx(1.0)
    if hasattr(model, "bounds"):
        low, high = model.bounds_
        predicted = model.predict(CELLS[:4] if len(model.biases_) == 2 else X[:4])
        assert ((predicted >= low) & (predicted <= high)).all()


@pytest.mark.parametrize("name", ALL)
def test_no_answer_ends_a_fit(name, told, seed):
    for draw in range(4):
        told.rng = np.random.default_rng([seed, draw, zlib.crc32(name.encode())])
        with quiet(), np.errstate(all="ignore"):
            model = ALL[name].build()
            try:
                ALL[name].call(model)
            # Of a vocabulary no word may remain, as its documentation says.
            except NotEnoughDataError:
                assert name.startswith("words")
                continue
            assert_in_domain(model)


@pytest.mark.parametrize("size", [1e70, 1e130, -1e300, np.inf, np.nan])
@pytest.mark.parametrize("kind", [PrivateCPCompletion, PrivateTuckerCompletion])
def test_no_released_factor_is_too_long_for_the_next_release(kind, size, monkeypatch):
    long = lambda self, mode: np.full((self.index_set.n_entries, 2), size)  # noqa: E731
    monkeypatch.setattr(Jacobian, "rows", long)
    model = kind(2, bounds=(-3, 3), perturbation="output", shape=(30, 8), epsilon=9.0)
    with quiet(), np.errstate(all="ignore"):
        assert_in_domain(model.fit(CELLS, VALUES))
