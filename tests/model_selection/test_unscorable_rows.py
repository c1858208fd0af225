"""A row that cannot be scored counts as the lower bound, whatever the others do."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from small_searches import counts
from toy_regressor import answering

from sktensor_dp import PrivateSpectralLDA, make_private_scorer
from sktensor_dp.model_selection.scores import answers

INF = math.inf
ROWS = np.zeros((100, 1))

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


def picky(X):
    """Refuses all rows where one is negative."""
    if (np.asarray(X) < 0).any():
        raise ValueError("negative")
    return np.asarray(X)[:, 0]


@pytest.mark.parametrize("metric", ["log_likelihood", "neg_mean_squared_error"])
@pytest.mark.parametrize("n_bad", [1, 99, 100])
def test_rows_that_the_model_refuses(metric, n_bad):
    X = np.full((100, 1), 0.0)
    X[:n_bad] = -1
    scorer = make_private_scorer(metric, bounds=(-1, 0), epsilon=INF)
    assert scorer(answering(picky), X, np.zeros(100)) == pytest.approx(-n_bad / 100)


def picky_of_texts(X):
    if any("no" in text for text in X):
        raise ValueError("no")
    return np.zeros(len(X))


@pytest.mark.parametrize("n_bad", [1, 99, 100])
def test_documents_that_the_model_refuses(n_bad):
    scorer = make_private_scorer("log_likelihood", bounds=(-1, 0), epsilon=INF)
    documents = ["no"] * n_bad + ["yes"] * (100 - n_bad)
    assert scorer(answering(picky_of_texts, texts=True), documents) == pytest.approx(-n_bad / 100)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix])
def test_a_refused_row_moves_no_other_answer(container, seed):
    """Not by one bit, though products of another number of rows round differently."""
    X = counts(57, seed) + 1.0
    model = PrivateSpectralLDA(2, epsilon=INF, random_state=0).fit(X)
    place = np.random.default_rng(seed).integers(57)
    bad = X.copy()
    bad[place, 0] = np.nan
    whole, found = (answers(model.score_samples, container(rows)) for rows in (X, bad))
    assert np.isnan(found[place])
    others = np.arange(57) != place
    assert (whole[others] == found[others]).all()


@pytest.mark.parametrize(
    "question", [lambda X: np.zeros(len(X) + 1), lambda X: np.zeros((len(X), 2)), lambda X: "no"]
)
def test_what_is_not_one_number_for_each_row_is_none(question):
    assert np.isnan(answers(question, ROWS)).all()


def test_a_held_out_row_that_a_function_leaves_out_counts_as_a_blank_one():
    """An error would tell that there is one, as would the number of answers."""
    rows = counts(60)
    score = make_private_scorer("log_likelihood_per_token", epsilon=INF, bounds=(-20.0, 0.0))
    lda = PrivateSpectralLDA(1, epsilon=INF, random_state=0).fit(rows)
    leaving = make_pipeline(FunctionTransformer(lambda X: X[np.flatnonzero(X[:, 0] < 5)]), lda)
    blank = np.where(rows[:, :1] < 5, rows, 0.0)
    assert score(leaving, rows) == score(lda, blank)
