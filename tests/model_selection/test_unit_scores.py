"""Scores on held-out units: clipped, silent, and each of its own row alone."""

import math
import warnings

import numpy as np
import pytest

from sktensor_dp import PrivateCPCompletion, PrivateSpectralLDA, PrivateTensorPowerMethod
from sktensor_dp.model_selection.scores import UnitScores
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.scores import HeldOutChunk, HeldOutScores

INF = float("inf")


def own(X, y):
    return X


def test_release_is_the_mean_clipped():
    scores = np.array([-5.0, 0.25, 0.5, math.nan, 7.0, INF])
    query = HeldOutScores(own, 0.0, 1.0)
    plan = ReleasePlan.split(INF, 1e-6, {"held_out_scores": 1.0})
    chunks = HeldOutChunk(scores, None, 6)
    with DataCurator(chunks, plan, spender="test", unit="row", accountant=None) as curator:
        value = curator.release("held_out_scores", query)[0] + query.middle
    assert value == pytest.approx((0 + 0.25 + 0.5 + 0 + 1 + 1) / 6)


def test_errors_name_shapes_and_no_scores():
    query = HeldOutScores(own, 0.0, 1.0)
    with pytest.raises(ValueError, match="each held-out row, in an array of as many"):
        query.total(HeldOutChunk(np.array([0.1, 0.2]), None, 3))
    with pytest.raises(ValueError, match=r"^Scoring must return numbers\.$") as caught:
        query.total(HeldOutChunk(["secret"], None, 1))
    assert caught.value.__context__ is None


def test_warnings_of_scores_stay_inside():
    def loud(X, y):
        warnings.warn(f"{X[0]} is odd", UserWarning, stacklevel=1)
        return np.log(X) * np.square(1e200 * X)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        total = HeldOutScores(loud, 0.0, 1.0).total(HeldOutChunk(np.array([-1.0, 0.0]), None, 2))
    assert total.tolist() == [-1.0]


# Scores of every name depend on their own row alone


def fitted():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, size=(200, 7)).astype(float)
    samples = rng.standard_normal((200, 4)) + 3 * np.eye(2, 4)[np.arange(200) % 2]
    cells = np.argwhere(np.ones((14, 14)))
    values = cells.sum(axis=1) / 10.0
    power = {"data_norm": 6.0, "epsilon": INF, "random_state": 0}
    lda = {"epsilon": INF, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield PrivateSpectralLDA(2, **lda).fit(counts), counts, None
        yield PrivateSpectralLDA(2, doc_topic_prior=0, **lda).fit(counts), counts, None
        yield PrivateTensorPowerMethod(2, **power).fit(samples), samples, None
        mixture = PrivateTensorPowerMethod(2, moment="gaussian_mixture", **power)
        yield mixture.fit(samples), samples, None
        single = PrivateTensorPowerMethod(2, moment="single_topic", epsilon=INF, random_state=0)
        yield single.fit(counts), counts, None
        completion = PrivateCPCompletion(1, bounds=(0, 3), epsilon=INF, random_state=0)
        yield completion.fit(cells, values), cells, values


def test_each_score_is_of_its_own_row(seed):
    rng = np.random.default_rng(seed)
    for model, X, y in fitted():
        names = ["log_likelihood", "log_likelihood_per_token"]
        if y is not None:
            names = ["neg_mean_squared_error", "neg_mean_absolute_error"]
        if (X < 0).any():
            names = ["log_likelihood"]
        for name in names:
            score = UnitScores(name, model)
            whole = score(X, y)
            rows = rng.permutation(len(X))[:23]
            part = score(X[rows], None if y is None else y[rows])
            # Sums in another order round differently; nothing else may change.
            np.testing.assert_allclose(part, whole[rows], rtol=1e-9, atol=1e-9)
            assert np.ptp(whole) > 0


def test_means_of_scores_are_what_score_says():
    for model, X, y in fitted():
        if y is not None:
            assert np.mean(UnitScores("neg_mean_squared_error", model)(X, y)) == pytest.approx(
                -np.mean((model.predict(X) - y) ** 2)
            )
        elif isinstance(model, PrivateSpectralLDA):
            assert model.score_samples(X).sum() == pytest.approx(model.score(X))
            tokens = X.sum(axis=1)
            per_token = UnitScores("log_likelihood_per_token", model)(X, None)
            assert math.exp(-np.average(per_token, weights=tokens)) == pytest.approx(
                model.perplexity(X)
            )
        else:
            assert model.score_samples(X).mean() == pytest.approx(model.score(X))
