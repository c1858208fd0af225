"""Documents of few words that are no mixture of topics: likelihood decides, not moments."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.spectral_topics.plan import plan_topics

pytestmark = pytest.mark.usefixtures("seeded_noise")

N, D, K, BURSTS = 100_000, 20, 3, 0.4
# The same topics at all seeds: likelihood has several optima at others.
TOPICS = np.random.default_rng(4).dirichlet(np.full(D, 0.5), size=K)


def bursts(seed):
    """Documents of one to three words of one topic; in some of them it is one word repeated."""
    rng = np.random.default_rng(seed)
    shares = TOPICS[rng.integers(K, size=N)]
    one, three = rng.multinomial(1, shares), rng.multinomial(3, shares)
    length = rng.integers(1, 4, size=(N, 1))
    short = np.where(length == 3, three, length * one)
    return np.where(rng.random((N, 1)) < BURSTS, length * one, short)


def draws(seed):
    """Three words of one topic each."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(3, TOPICS[rng.integers(K, size=N)])


def distance(found, wanted):
    """Mean total variation of matched topics."""
    cost = np.abs(found[:, None] - wanted[None]).sum(axis=2) / 2
    return cost[linear_sum_assignment(cost)].mean()


def fitted(X, **parameters):
    return PrivateSpectralLDA(K, doc_topic_prior=0, random_state=0, **parameters).fit(X)


def made_and_not(lda):
    """Number of EM steps that were made, and of those that were paid for and not made."""
    composition = lda.privacy_report_.composition
    return tuple(
        sum(row.uses for row in rows if row.name == "expected_counts")
        for rows in (composition.rows, composition.unused)
    )


def test_a_fit_with_noise_ends_where_one_without_does(seed):
    X = bursts(seed)
    exact, private = fitted(X, epsilon=np.inf).components_, fitted(X, epsilon=4.0)
    assert made_and_not(private) == (12, 0)
    # Seeds 0 to 58: .005 to .11, against .14 to .31 where moments are matched whatever they
    # say, and .55 for word frequencies; .44 of the second, at most.
    matched = fitted(X, epsilon=4.0, n_refinements=0)
    off = distance(private.components_, exact)
    assert off < min(0.65 * distance(matched.components_, exact), 0.16)
    assert distance(np.tile(private.unigram_, (K, 1)), exact) > 0.3


def test_steps_are_not_made_where_documents_have_one_topic(seed):
    X = draws(seed)
    lda = fitted(X, epsilon=4.0)
    assert made_and_not(lda) == (0, 12)
    # Seeds 0 to 58: at most .0077.
    assert distance(lda.components_, TOPICS) < 0.012
    assert lda.privacy_report_.epsilon == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("changed", "reserved"),
    [
        ({}, 12),
        ({"n_refinements": 0}, 0),
        ({"perturbation": "moment_tensor"}, 0),
        ({"delta": 0.0}, 0),
        # Too few documents for the noise of a step.
        ({"epsilon": 0.1}, 0),
        ({"epsilon": np.inf}, 12),
    ],
    ids=str,
)
def test_public_numbers_say_whether_steps_are_kept(changed, reserved):
    usual = {
        "epsilon": 1.0, "delta": 1e-6, "perturbation": "whitened_tensor", "n_refinements": None,
        "limits": {},
    }  # fmt: skip
    plan = plan_topics(N, D, K, **{**usual, **changed})
    assert plan.n_refinements == reserved
    assert plan.may_misfit == (reserved == 12)
    if plan.may_misfit:
        steps = next(row for row in plan.releases.releases if row.name == "expected_counts")
        assert 12 * steps.cost.mu**2 == pytest.approx(0.1 * plan.releases.cost.mu**2)
