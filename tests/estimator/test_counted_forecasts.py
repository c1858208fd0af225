"""Forecasts of fits that count their units first: what they assume, and by what they are noisy."""

import math

import pytest

from sktensor_dp import PrivateCountVectorizer, PrivateSpectralLDA, PrivateTensorPowerMethod

SIZE = (50_000, 30)
MODELS = [
    (PrivateSpectralLDA(3, doc_topic_prior=0), math.sqrt(2)),
    (PrivateSpectralLDA(3, delta=0), 2.0),
    (PrivateSpectralLDA(3, perturbation="moment_tensor"), math.sqrt(2)),
    (PrivateTensorPowerMethod(3, data_norm=2.0), math.sqrt(2)),
    (PrivateTensorPowerMethod(3, data_norm=2.0, perturbation="iteration"), 2.0),
    (PrivateTensorPowerMethod(3, moment="single_topic"), math.sqrt(2)),
]


@pytest.mark.parametrize(("model", "gain"), MODELS, ids=str)
def test_a_forecast_says_what_number_it_assumes(model, gain):
    public = model.set_params(neighbours="replace_one").forecast(*SIZE)
    private = model.set_params(neighbours="add_remove").forecast(*SIZE)
    assert public.count_sigma is None
    assert "released" not in str(public)
    strength = model.epsilon if model.delta == 0 else 1 / private.count_sigma
    assert strength > 0
    assert "50000 is taken for the number that would be released" in str(private)
    # A percent of the budget goes to the count, and every release moves by less.
    left = 0.99 if model.delta == 0 else math.sqrt(0.99)
    first = public.releases[0].sigma / private.releases[0].sigma
    assert first == pytest.approx(gain * left, rel=1e-9)
    assert len(public.releases) == len(private.releases)


def test_a_forecast_is_about_the_noise_that_a_fit_has():
    words = PrivateCountVectorizer(max_words_per_document=20, neighbours="add_remove")
    assert (
        words.forecast(10_000).sigma
        < PrivateCountVectorizer(max_words_per_document=20).forecast(10_000).sigma
    )
