"""Rows longer than the norm of a fit: answers about them warn, fits and private scores do not."""

import warnings

import dask.array as da
import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sktensor_dp import (
    PrivateGaussianMixture,
    PrivateSearchCV,
    PrivateTensorPowerMethod,
    make_private_scorer,
    scale_by_ranges,
)
from sktensor_dp.gaussian_mixture.fitted import move_to_units

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:Nearly all rows"),  # released
]
LONGER = "Most of these rows are longer than data_norm="
RANGES = {0: (0, 100), 1: (0, 40)}
SCALER = scale_by_ranges(RANGES)
RAW = np.random.default_rng(0).uniform([20, 10], [80, 30], (600, 2))
X = SCALER.transform(RAW)
CLASSES = [PrivateGaussianMixture, PrivateTensorPowerMethod]
SCORER = make_private_scorer("log_likelihood", bounds=(-20.0, 5.0), epsilon=9.0)


def model(kind=PrivateGaussianMixture, data_norm: float | str = 1.5):
    return kind(1, data_norm=data_norm, epsilon=9.0)


@pytest.mark.parametrize("data_norm", [1.5, "auto"])
@pytest.mark.parametrize("kind", CLASSES)
def test_answers_about_rows_in_other_units_warn(kind, data_norm):
    fitted = model(kind, data_norm).fit(X)
    for name in ("predict", "predict_proba", "transform", "score_samples", "score", "bic", "aic"):
        if hasattr(fitted, name):
            answer = getattr(fitted, name)
            answer(X)
            answer(np.vstack([RAW[:100], X[:500]]))  # not most
            with pytest.warns(UserWarning, match=LONGER):
                answer(RAW)
    make_pipeline(SCALER, fitted).score(RAW)


def test_a_mixture_in_units_and_a_model_of_a_tensor_have_no_norm_of_rows():
    fitted = model().fit(X)
    move_to_units(fitted, np.array([*RANGES.values()]))
    fitted.predict(RAW)
    tensor = PrivateTensorPowerMethod(1, data_norm=0.1, epsilon=9.0).fit_tensor(np.ones((2, 2, 2)))
    tensor.transform(X)


def of_dask(rows):
    """Fit lazily transformed rows, which are computed in threads once they are read."""
    step = model(PrivateTensorPowerMethod).fit(X)
    model().fit(step.transform(da.from_array(rows, chunks=(200, 2))))


PROTECTED = {
    "fit_predict": lambda: model().fit_predict(RAW),
    "fit_transform": lambda: model(PrivateTensorPowerMethod).fit_transform(RAW),
    "pipeline": lambda: make_pipeline(model(PrivateTensorPowerMethod), model()).fit(RAW),
    "dask": lambda: of_dask(RAW),
    "scorer": lambda: SCORER(model().fit(X), RAW),
    "folds": lambda: cross_val_score(model(), RAW, scoring=SCORER, cv=2),
    "search": lambda: PrivateSearchCV(
        model(), {"n_components": [1, 2]}, epsilon=9.0, score_bounds=(-20.0, 5.0), anyway=True
    ).fit(RAW),
}


@pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore:The score lies at an end")
@pytest.mark.parametrize("name", PROTECTED)
def test_no_warning_shows_how_long_rows_of_fits_and_private_scores_are(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PROTECTED[name]()
    assert not [one for one in caught if LONGER in str(one.message)]
