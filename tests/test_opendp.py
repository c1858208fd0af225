"""Fits as measurements of OpenDP, and fits that a context of OpenDP pays for."""

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateSpectralLDA,
)
from sktensor_dp.opendp import ContextAccountant, as_measurement
from sktensor_dp.privacy.conversions import gaussian_mu, pure_rho

dp: Any = pytest.importorskip("opendp.prelude", reason="OpenDP is an extra")
dp.enable_features("contrib", "honest-but-curious")

X = np.random.default_rng(0).poisson(1.0, (400, 5))
TEXTS = ["cats chase mice", "dogs chase cats"] * 200
RATINGS = {"X": np.argwhere(np.ones((9, 8))), "y": np.ones(72)}
DELTA = 1e-6
RHO = gaussian_mu(2.0, DELTA) ** 2 / 2
OF_WORDS = gaussian_mu(2.0, DELTA / 2) ** 2 / 2, DELTA / 2
TOPICS = PrivateSpectralLDA(1, epsilon=2.0, delta=DELTA)
PURE = PrivateSpectralLDA(1, epsilon=2.0, delta=0)
WORDS = PrivateCountVectorizer(epsilon=2.0, delta=DELTA)
COMPLETION = PrivateCPCompletion(0, epsilon=2.0, delta=0, bounds=(0.0, 2.0), shape=(9, 8))
COUNTED = PrivateSpectralLDA(1, epsilon=2.0, delta=DELTA, neighbours="add_remove")
LOSSES = [
    # Of measures as they are by default; rho, (rho, delta) and (epsilon, delta) are those of
    # contexts that measure so.
    (TOPICS, X, {"default": RHO, "rho": RHO, "approximate": (RHO, 0.0), "pair": (2.0, DELTA)}),
    (COUNTED, X, {"default": RHO, "rho": RHO}),
    (PURE, X, {"default": 2.0, "epsilon": 2.0, "rho": pure_rho(2.0), "pair": (2.0, 0.0)}),
    (COMPLETION, RATINGS, {"default": 2.0}),
    (WORDS, TEXTS, {"default": OF_WORDS, "approximate": OF_WORDS, "pair": (2.0, DELTA)}),
]
MEASURES = {
    "rho": {"rho": 9.0}, "epsilon": {"epsilon": 9.0}, "approximate": {"rho": 9.0, "delta": 0.1},
    "pair": {"epsilon": 9.0, "delta": 0.1},
}  # fmt: skip


def context_of(data: Any, neighbours: str, **loss: float) -> Any:
    unit = dp.unit_of(contributions=1) if neighbours == "add_remove" else dp.unit_of(changes=1)
    domain = dp.user_domain("units", lambda _: True)
    return dp.Context.compositor(data, unit, dp.loss_of(**loss), domain=domain)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "data", "losses"), LOSSES, ids=lambda one: type(one).__name__
)
def test_a_fit_is_a_measurement_of_its_cost(estimator: Any, data: Any, losses: Any) -> None:
    for name, loss in losses.items():
        if name == "default":
            made = as_measurement(estimator)
            assert made.map(1) == pytest.approx(loss, rel=1e-9)
            assert made(data).privacy_report_.epsilon <= 2.0 * (1 + 1e-9)
            with pytest.raises(dp.OpenDPException):
                made.map(2)
            continue
        # By OpenDP, and by the fit itself: both pay the same.
        contexts = [context_of(data, estimator.neighbours, **MEASURES[name]) for _ in range(2)]
        model = contexts[0](as_measurement(estimator, contexts[0]))
        assert model.accountant is None
        payer = ContextAccountant(contexts[1], delta=estimator.delta)
        paying = clone(estimator).set_params(accountant=payer)
        _ = paying.fit(**data) if isinstance(data, dict) else paying.fit(data)
        for context in contexts:
            assert context.current_privacy_loss() == pytest.approx(loss, rel=1e-9)
        assert payer.total()[0] == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize(
    ("neighbours", "loss", "error", "told"),
    [
        ("replace_one", {"rho": RHO / 2}, BudgetError, "refused"),
        ("replace_one", {"epsilon": 9.0}, ValueError, "no finite loss"),
        ("add_remove", {"rho": 9.0}, ValueError, "change_one_distance"),
    ],
)
def test_a_context_that_does_not_pay_stops_a_fit(
    neighbours: str, loss: Any, error: type[Exception], told: str
) -> None:
    payer = ContextAccountant(context_of(X, neighbours, **loss))
    model = PrivateSpectralLDA(1, epsilon=2.0, accountant=payer)
    with pytest.raises(error, match=told):
        model.fit(X)
    assert not hasattr(model, "components_")
    assert payer.entries == ()


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateSpectralLDA(1, epsilon=math.inf),
        PrivateSpectralLDA(1, accountant=BudgetAccountant()),
        PrivateCPCompletion(1, bounds=(0, 1)),
    ],
)
def test_a_fit_of_unknown_cost_is_no_measurement(estimator: Any) -> None:
    with pytest.raises(ValueError, match="estimator"):
        as_measurement(estimator)
