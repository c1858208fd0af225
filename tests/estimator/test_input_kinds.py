"""Data of a wrong kind gets a message that says what to do, and costs nothing."""

import datetime

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from small_corpora import counts

from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)
from sktensor_dp.queries.error_sanitising import read

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

SECRET = "swordfish"
DAYS = pd.date_range("2026-01-01", periods=30)
FRAME = pd.DataFrame({"n": np.arange(30), "text": [SECRET] * 30, "day": DAYS})


class Lazy:
    """What a Dask array shows of itself before it is computed."""

    shape, ndim, dtype = (30, 2), 2, np.dtype(float)

    def __dask_graph__(self):
        raise AssertionError("it was computed")

    __array__ = __dask_graph__


MATRICES = {
    "a frame with dates": (FRAME[["n", "day"]], "X must hold numbers.*dates and times are none"),
    "an array of dates": (FRAME[["day"]].to_numpy(), "X must hold numbers.*number the periods"),
    "durations": (np.ones((30, 2), "timedelta64[s]"), "X must hold numbers.*dates and times"),
    "datetime objects": (np.array([[datetime.date(2026, 1, 1)] * 2] * 9), "X must hold numbers"),
    "numbers as text": (np.array([["1", "2"]] * 9), "got text; (count|encode)"),
    "a frame of text": (FRAME[["text", "text"]].set_axis(["a", "b"], axis=1), "([Cc]ount|encode) "),
    "lists of several lengths": ([[1, 2], [3]], "X must be a table of numbers|inhomogeneous"),
    "integers beyond floats": (np.full((30, 2), 10**400), "X must hold numbers within"),
    "masked": (np.ma.masked_equal(np.arange(60).reshape(30, 2), 7), "X must have no masked entr"),
    "dask": (Lazy(), r"X is a .*Lazy, which is not computed yet. Pass X.compute\(\)"),
}
ESTIMATORS = {
    "topics": lambda **given: PrivateSpectralLDA(2, **given),
    "samples": lambda **given: PrivateTensorPowerMethod(2, data_norm=3.0, **given),
    "documents": lambda **given: PrivateTensorPowerMethod(2, moment="single_topic", **given),
    "CP": lambda **given: PrivateCPCompletion(2, bounds=(0, 1), **given),
    "Tucker": lambda **given: PrivateTuckerCompletion(2, bounds=(0, 1), **given),
}


def refused(fit, message):
    """A fit that is refused by a message without data, for nothing."""
    accountant = BudgetAccountant(100.0, 1e-4)
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        fit(accountant)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.__context__)
    assert accountant.entries == ()


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", MATRICES)
def test_matrices_of_a_wrong_kind_cost_nothing(kind, estimator):
    X, message = MATRICES[kind]
    y = np.zeros(np.shape(X)[0]) if not isinstance(X, list | Lazy) else np.zeros(2)
    refused(lambda payer: ESTIMATORS[estimator](accountant=payer).fit(X, y), message)


def test_what_is_said_of_a_table_holds_for_samples_and_for_documents():
    """Samples are no counts of words."""
    for X, message in (
        (np.ones((30, 2)) * 1j, "X must hold real numbers"),
        (np.ones(30), "row per document or sample, and one column per word or feature"),
        (np.full((30, 2), 10**400), "X must hold numbers within those of double precision"),
    ):
        for estimator in ("topics", "samples"):
            refused(
                lambda payer, of=estimator, X=X: ESTIMATORS[of](accountant=payer).fit(X), message
            )


def test_columns_of_one_name_are_called_that():
    """Which versions of scikit-learn refuse them differs; how it is said does not."""
    frame = FRAME[["n", "n"]]
    with pytest.raises(ValueError, match="X must have columns of different names"):
        read(lambda: nw.from_native(frame), "X")


@pytest.mark.parametrize("estimator", ["topics", "samples", "documents"])
def test_chunks_of_a_wrong_kind_cost_nothing(estimator):
    for part, message in (
        (FRAME[["n", "day"]], "a chunk must hold numbers.*dates"),
        ([[SECRET] * 2] * 30, "a chunk must hold numbers, got text; count the words"),
        (np.ones((30, 2, 2)), "a chunk must be two-dimensional, got 3 axes"),
        (np.ma.masked_equal(counts(30, 2), 1), "a chunk must have no masked entries"),
        (Lazy(), "a chunk is a .*Lazy, which is not computed"),
    ):
        source = [counts(30, 2), part]
        refused(
            lambda payer, source=source: ESTIMATORS[estimator](accountant=payer).fit_chunks(
                source, n_samples=60, n_features=2
            ),
            message,
        )


TENSORS = {
    "sparse": (sp.csr_array(np.eye(3)), "T must be dense, got a csr_array.*toarray"),
    "text": ([[[SECRET]]], "T must hold numbers, got text"),
    "objects": (np.full((2, 2, 2), SECRET, object), "T must hold numbers"),
    "dates": (np.zeros((3, 3, 3), "datetime64[s]"), "T must hold numbers.*dates"),
    "complex": (np.ones((3, 3, 3)) * 1j, "Complex data not supported: T"),
    "ragged": ([[1, 2], [3]], "T must be a table"),
    "masked": (np.ma.masked_equal(np.eye(3), 1), "T must have no masked entries"),
    "dask": (Lazy(), "T is a .*Lazy, which is not computed"),
}


@pytest.mark.parametrize("estimator", ["samples", "CP", "Tucker"])
@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_of_a_wrong_kind_cost_nothing(kind, estimator):
    T, message = TENSORS[kind]
    refused(lambda payer: ESTIMATORS[estimator](accountant=payer).fit_tensor(T), message)


VALUES = {
    "dates": (DAYS, "y must hold numbers.*dates"),
    "date objects": (DAYS.astype(object), "y must hold numbers"),
    "text": (np.array([SECRET] * 30), "y must hold numbers, got text"),
    "complex": (np.ones(30) * 1j, "y must hold real numbers"),
    "integers beyond floats": ([10**400] * 30, "y must hold numbers within those of double"),
    "too few": (np.ones(29), "its length is not the number of rows"),
    "sparse": (sp.csr_matrix(np.ones(30)), "y must be dense"),
    "masked": (np.ma.masked_equal(np.arange(30.0), 7), "y must have no masked entries"),
    "beyond doubles": (np.full(30, np.longdouble("1e4000")), "y contains NaN or infinity"),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_a_wrong_kind_cost_nothing(kind):
    y, message = VALUES[kind]
    X = np.column_stack([np.arange(30), np.arange(30) % 4])
    refused(lambda payer: ESTIMATORS["CP"](accountant=payer).fit(X, y), message)
    entries = sp.coo_matrix(np.eye(3))
    refused(lambda payer: ESTIMATORS["CP"](accountant=payer).fit(entries, y), r"M\.nonzero")


DOCUMENTS = {
    "a numeric column": (FRAME["n"], "item 0 is of type .* Pass the column that holds the texts"),
    "dates": (FRAME["day"], "type Timestamp. Pass the column that holds the texts"),
    "a table": (FRAME, "DataFrame and shape .* Pass one column of a table"),
    "one text": (SECRET, r"type str. .* a single document as \[document\]"),
    "one missing": ([SECRET, None], "item 1 is of type NoneType. Drop missing documents"),
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_documents_of_a_wrong_kind_cost_nothing(kind):
    documents, message = DOCUMENTS[kind]
    refused(lambda payer: PrivateCountVectorizer(accountant=payer).fit(documents), message)


# --------------------------------------------------------------- unknown categories


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
    model = PrivateCPCompletion(1, bounds=(0, 1), shape=(40, 5), unit_mode=0, random_state=0).fit(
        X, y
    )
    np.testing.assert_array_equal(
        model.predict([[-1, 2], [3, -1]]), model.predict([[40, 2], [3, 5]])
    )
    own = model.fold_in(X[:50], y[:50])
    np.testing.assert_array_equal(own.predict([[-1, 2], [3, -1]]), own.predict([[99, 2], [3, 5]]))


@pytest.mark.parametrize("estimator", [PrivateCPCompletion, PrivateTuckerCompletion])
def test_unknown_categories_are_still_refused_at_the_fit(estimator):
    refused(
        lambda payer: estimator(1, bounds=(0, 1), accountant=payer).fit([[0, -1], [1, 0]], [0, 1]),
        "Negative values in data: X must have coordinates >= 0 to fit. Leave out",
    )


@pytest.mark.parametrize("kind", [sp.csr_matrix, np.asarray])
@pytest.mark.parametrize("n_axes", [2, 3])
def test_a_matrix_as_a_source_is_checked_as_any_other(kind, n_axes):
    """It is an iterable of its rows, or of its matrices, not rows that were checked before."""
    X = np.full((4, 3), 0.5)
    if n_axes == 3 and kind is sp.csr_matrix:
        source = [kind(X)]
    else:
        source = kind(X) if n_axes == 2 else X[None]
    budget = BudgetAccountant(epsilon=3.0, delta=1e-5)
    model = PrivateSpectralLDA(1, accountant=budget)
    with pytest.raises(ValueError, match=r"whole|two-dimensional"):
        model.fit_chunks(source, n_samples=4, n_features=3)
    assert budget.total()[0] == 0.0
