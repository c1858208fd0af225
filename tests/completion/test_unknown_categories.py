"""Categories that no fit has seen are predicted from the others."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from sktensor_dp import PrivateCPCompletion, PrivateTuckerCompletion

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


@pytest.mark.parametrize("estimator", [PrivateCPCompletion, PrivateTuckerCompletion])
def test_categories_unknown_to_an_encoder_are_predicted_from_the_others(estimator):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice(["a", "b"], 400), rng.choice(["x", "y", "z"], 400)])
    y = 0.5 + 0.3 * (X[:, 0] == "a") - 0.2 * (X[:, 1] == "x")
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    model = estimator(1, bounds=(0, 1), epsilon=float("inf"), random_state=0)
    pipeline = make_pipeline(encoder, model).fit(X, y)
    unknown = pipeline.predict([["a", "new"], ["new", "x"], ["new", "new"]])
    mean, (first, second) = model.mean_, model.biases_
    expected = np.clip([mean + first[0], mean + second[0], mean], 0, 1)
    np.testing.assert_allclose(unknown, expected, rtol=1e-12)
    # As beyond the shape.
    np.testing.assert_array_equal(unknown, model.predict([[0, 3], [2, 0], [2, 3]]))
    np.testing.assert_array_equal(
        model.transform([[0, -1], [-1, 0]]), model.transform([[0, 3], [2, 0]])
    )
    np.testing.assert_array_equal(model.predict([[-1, -7]]), model.predict([[9, 9]]))


def test_units_and_rows_unknown_to_an_encoder_are_predicted_from_what_is_shared():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(40, size=600), rng.integers(5, size=600)])
    y = 0.2 * X[:, 1]
    model = PrivateCPCompletion(1, bounds=(0, 1), shape=(40, 5), unit_mode=0, random_state=0)
    model.fit(X, y)
    for one, missing in ((model, 40), (model.fold_in(X[:50], y[:50]), 99)):
        unknown = one.predict([[-1, 2], [3, -1]])
        np.testing.assert_array_equal(unknown, one.predict([[missing, 2], [3, 5]]))
