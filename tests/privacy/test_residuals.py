"""Reports say where the program's noise is not proved to have the law on the page."""

import json
import math

import numpy as np
from small_corpora import counts, tiny

from sktensor_dp import (
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)
from sktensor_dp.privacy.mechanisms import Mechanism
from sktensor_dp.privacy.releases import CATALOGUE

LAWS = [law for e in CATALOGUE.values() for law in (e.gaussian, e.pure) if law is not None]
SAMPLES = np.random.default_rng(0).standard_normal((200, 4))
CELLS = np.argwhere(np.ones((4, 4, 4)))
VALUES = np.random.default_rng(0).random(len(CELLS))
SPHERICAL = "Spherical Laplace noise"


def fits():
    """Of every kind, what its report has to say beside delta, and the fit."""
    lda = {"n_components": 2, "random_state": 0}
    yield None, PrivateSpectralLDA(**lda).fit(counts())
    # Third moments, the only ones with spherical noise, are of the published method.
    yield None, PrivateSpectralLDA(**lda, delta=0.0).fit(counts())
    yield SPHERICAL, PrivateSpectralLDA(**lda, delta=0.0, n_refinements=0).fit(counts())
    words = {**lda, "perturbation": "moment_tensor"}
    yield None, PrivateSpectralLDA(**words).fit(counts())
    yield SPHERICAL, PrivateSpectralLDA(**words, delta=0.0).fit(counts())
    yield None, PrivateSpectralLDA(**lda, delta=0.0, epsilon=math.inf).fit(counts())
    for perturbation in ("whitened_tensor", "moment_tensor", "iteration", "stream"):
        power = {**lda, "data_norm": 1.0, "perturbation": perturbation, "max_iter": 2}
        yield None, PrivateTensorPowerMethod(**power).fit(SAMPLES)
        yield SPHERICAL, PrivateTensorPowerMethod(**power, delta=0.0).fit(SAMPLES)
    cells = {"rank": 1, "bounds": (0, 1), "max_iter": 1, "perturbation": "gradient"}
    yield None, PrivateCPCompletion(**cells).fit(CELLS, VALUES)
    # One step of the gradient has Laplace noise by coordinates.
    yield None, PrivateCPCompletion(**cells, delta=0.0).fit(CELLS, VALUES)


@tiny
def test_what_the_program_adds_to_delta_is_in_the_report():
    for wanted, model in fits():
        report = model.privacy_report_
        for shown in (str(report), report._repr_html_(), json.loads(report.to_json())["notes"]):
            said = str(shown)
            assert (SPHERICAL in said) == (wanted == SPHERICAL)


@tiny
def test_a_stream_goes_on_saying_it():
    power = PrivateTensorPowerMethod(1, data_norm=1.0, delta=0.0, max_iter=2, random_state=0)
    for start in range(0, 200, 50):
        power.partial_fit(SAMPLES[start : start + 50])
    notes = power.privacy_report_.notes
    assert sum(SPHERICAL in note for note in notes) == 1
    assert sum("disjoint" in note for note in notes) == 1


def test_every_law_that_is_not_proved_has_a_residual():
    assert any(law.name.startswith("spherical") for law in LAWS)
    for law in LAWS:
        if isinstance(law, Mechanism) and law.name.startswith("spherical"):
            assert law.residual is not None
