"""Counts are whole numbers: whatever holds fractions is refused before it is charged for."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from small_corpora import counts

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

MODELS = {
    "topics": lambda **given: PrivateSpectralLDA(2, **given),
    "components": lambda **given: PrivateTensorPowerMethod(2, moment="single_topic", **given),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
TEXTS = ["cats chase mice", "dogs chase cats", "mice eat cheese"] * 20


class Chunks:
    """A re-iterable source that says how often it was read."""

    def __init__(self, *parts):
        self.parts, self.reads = parts, 0

    def __iter__(self):
        self.reads += 1
        yield from self.parts


@every_model
def test_tf_idf_is_refused_before_the_charge(model):
    accountant = BudgetAccountant(10.0, 1e-5)
    pipeline = make_pipeline(TfidfVectorizer(), model(accountant=accountant))
    with pytest.raises(ValueError, match="it holds fractions"):
        pipeline.fit(TEXTS)
    assert accountant.entries == ()
    assert not hasattr(pipeline[-1], "components_")


@every_model
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_whole_numbers_of_a_floating_type_are_counts(model, kind):
    X = counts()
    fitted = model(epsilon=float("inf"), random_state=0).fit(X)
    floating = model(epsilon=float("inf"), random_state=0).fit(X.astype(kind))
    np.testing.assert_array_equal(floating.components_, fitted.components_)


WRONG = {
    "fractions": (counts()[50:] * 1.5, "it holds fractions"),
    "negative": (counts()[50:] - 9, "Negative values"),
    "nan": (np.full((150, 7), np.nan), "NaN"),
    "too few": (counts()[51:], "n_samples is 200"),
    "too wide": (np.ones((150, 8)), "n_features is 7"),
}


@every_model
@pytest.mark.parametrize("name", WRONG)
def test_wrong_chunks_are_refused_before_the_charge(name, model):
    part, message = WRONG[name]
    accountant = BudgetAccountant(10.0, 1e-5)
    source = Chunks(counts()[:50], part)
    with pytest.raises(ValueError, match=message):
        model(accountant=accountant).fit_chunks(source, n_samples=200, n_features=7)
    assert source.reads == 1
    assert accountant.entries == ()


@every_model
def test_chunks_that_cannot_be_paid_are_not_read(model):
    accountant = BudgetAccountant(0.5, 1e-5)
    source = Chunks(counts())
    with pytest.raises(BudgetError):
        model(accountant=accountant).fit_chunks(source, n_samples=200, n_features=7)
    assert source.reads == 0
    assert accountant.entries == ()


def test_chunks_of_samples_are_validated_before_the_charge():
    accountant = BudgetAccountant(10.0, 1e-5)
    model = PrivateTensorPowerMethod(2, data_norm=3.0, accountant=accountant)
    for part in (np.full((150, 7), np.inf), np.ones((149, 7)), np.ones((150, 6))):
        with pytest.raises(ValueError, match=r"infinity|n_samples is 200|n_features is 7"):
            model.fit_chunks([counts()[:50], part], n_samples=200, n_features=7)
    assert accountant.entries == ()
