"""How a tensor power method turns its parameters into plans, curators and attributes."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sktensor_dp.estimator.base import Fitted, PlannedFit, PrivateEstimatorMixin
from sktensor_dp.estimator.input_errors import checked_table
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.power_method.plan import (
    AFTER_RELEASE,
    MomentPlan,
    check_moments_fit,
    plan_moments,
)
from sktensor_dp.power_method.recipe import FittedComponents, fit_gaussian_mixture, fit_raw_moments
from sktensor_dp.privacy.curators.documents import DocumentCurator
from sktensor_dp.privacy.curators.samples import SampleCurator, TensorCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.spectral_topics.plan import TopicPlan, check_topics_fit, plan_topics
from sktensor_dp.spectral_topics.recipe import TopicOptions, fit_topics
from sktensor_dp.statistics.counts import CountChunks, as_counts
from sktensor_dp.statistics.power_iterations import TensorChunk
from sktensor_dp.statistics.samples import SampleChunks, as_samples
from sktensor_dp.tensor.online import OnlinePowerMethod

__all__ = ["PowerLearningMixin", "attributes_of", "found_by"]

Floats = NDArray[np.float64]

# Constant coordinate of a mixture's samples, in radii: small enough to cost little
# noise, large enough that scales are read off it.
OFFSET = 0.5
STREAM_PROGRESS = ("n_batches_seen_", "n_batches_needed_", "is_complete_")
BY_STEPS = ("iteration", "stream")
PERTURBATIONS = ("auto", "whitened_tensor", "moment_tensor", *BY_STEPS)


class PowerLearningMixin(PrivateEstimatorMixin):
    """Fitting by the parameters of :class:`~sktensor_dp.PrivateTensorPowerMethod`."""

    n_components: int
    epsilon: float
    delta: float
    moment: str
    whiten: bool
    perturbation: str
    data_norm: float | None
    n_restarts: int
    max_iter: int | None
    random_state: Any

    def _check_combination(self, allowed: Iterable[str], method: str) -> None:
        """Raise unless the parameters make sense together, for one of the fit methods."""
        self._check_parameters()
        name = type(self).__name__
        if self.perturbation not in allowed:
            raise ValueError(
                f"{method} of {name} needs perturbation to be one of {list(allowed)}, got "
                f"{self.perturbation!r}."
            )
        if self.moment != "raw" and self.perturbation in BY_STEPS:
            raise ValueError(
                f"perturbation={self.perturbation!r} decomposes the raw third moment; "
                f"moment={self.moment!r} needs 'whitened_tensor' or 'moment_tensor'."
            )
        if self.moment != "raw" and not self.whiten:
            raise ValueError(f"moment={self.moment!r} needs whiten=True, got whiten=False.")
        if self.moment != "single_topic" and self.data_norm is None and method != "fit_tensor":
            raise ValueError(
                f"The 'data_norm' parameter of {name} must be given for moment={self.moment!r}: "
                "the public Euclidean norm that rows are scaled down to."
            )

    def _radius(self) -> float:
        assert self.data_norm is not None
        return float(self.data_norm)

    def _bound(self) -> float:
        """Largest change of an entry of a private tensor."""
        return 1.0 if self.data_norm is None else float(self.data_norm)

    def _offset(self) -> float:
        return OFFSET * self._radius() if self.moment == "gaussian_mixture" else 0.0

    def _plan(self, n_samples: int, n_features: int, perturbation: str) -> MomentPlan:
        return plan_moments(
            n_samples,
            n_features,
            self.n_components,
            epsilon=self.epsilon,
            delta=self.delta,
            perturbation=perturbation,
            whiten=self.whiten,
            n_restarts=self.n_restarts,
            max_iter=self.max_iter,
        )

    def _topic_plan(self, n_samples: int, n_features: int) -> TopicPlan:
        moment = self.perturbation == "moment_tensor"
        return plan_topics(
            n_samples,
            n_features,
            self.n_components,
            epsilon=self.epsilon,
            delta=self.delta,
            perturbation="moment_tensor" if moment else "whitened_tensor",
            n_refinements=None,
            limits={},
        )

    def _planned_fit(
        self, chunks: CountChunks | SampleChunks, columns: Mapping[str, Any]
    ) -> PlannedFit[Any]:
        """Plan a fit of validated data that is read as often as needed."""
        if isinstance(chunks, CountChunks):
            return self._planned_topics(chunks, columns)
        return self._planned_samples(chunks, columns)

    def _planned_topics(
        self, chunks: CountChunks, columns: Mapping[str, Any]
    ) -> PlannedFit[DocumentCurator]:
        plan = self._topic_plan(chunks.n_units, chunks.n_features)
        check_topics_fit(plan, chunks.n_features, self.epsilon)
        max_iter = self.max_iter or AFTER_RELEASE

        def recipe(curator: DocumentCurator) -> Fitted:
            options = TopicOptions(0.0, "isotropic", self.random_state, self.n_restarts, max_iter)
            topics = fit_topics(curator, plan, options)
            order = np.argsort(-topics.weights, kind="stable")
            found = FittedComponents(topics.topics[order], topics.weights[order], topics.n_resolved)
            return self._fitted(found, max_iter)

        options = {"unit": "document", "limits": {}, "pure": self.delta == 0}
        return PlannedFit(
            DocumentCurator, chunks, plan.releases, recipe, columns, options,
            self._cautions_of_cap(chunks.n_features),
        )  # fmt: skip

    def _planned_samples(
        self, chunks: SampleChunks, columns: Mapping[str, Any]
    ) -> PlannedFit[SampleCurator]:
        n_features = chunks.n_features
        plan = self._plan(chunks.n_units, n_features, self.perturbation)
        check_moments_fit(plan, n_features)
        offset = self._offset()

        def recipe(curator: SampleCurator) -> Fitted:
            random_state = check_random_state(self.random_state)
            if self.moment == "gaussian_mixture":
                found = fit_gaussian_mixture(curator, plan, offset, random_state)
            elif plan.perturbation == "iteration":
                found = self._iterated(curator, plan, n_features, random_state)
            else:
                found = fit_raw_moments(curator, plan, n_features, random_state)
            return self._fitted(found, plan.max_iter)

        return PlannedFit(
            SampleCurator, chunks, plan.releases, recipe, columns,
            {"radius": self._radius(), "offset": offset}, self._cautions_of_cap(n_features),
        )  # fmt: skip

    def _planned_tensor(self, chunk: TensorChunk, n_features: int) -> PlannedFit[TensorCurator]:
        """Plan to decompose a tensor whose entries are private."""
        plan = self._plan(1, n_features, "iteration")
        releases = ReleasePlan.split(
            self.epsilon, self.delta, {"tensor_power_iterations": 1.0},
            {"tensor_power_iterations": plan.n_components * (plan.max_iter + 1)},
        )  # fmt: skip
        bound = self._bound()

        def recipe(curator: TensorCurator) -> Fitted:
            random_state = check_random_state(self.random_state)
            found = self._iterated(curator, plan, n_features, random_state)
            return self._fitted(found, plan.max_iter)

        neighbours = f"tensors that differ by {bound:g} in each of the six orders of one entry"
        return PlannedFit(
            TensorCurator, chunk, releases, recipe, {"n_features_in_": n_features},
            {"bound": bound, "unit": "entry", "neighbours": neighbours},
            self._cautions_of_cap(n_features),
        )  # fmt: skip

    def _iterated(
        self,
        curator: SampleCurator | TensorCurator,
        plan: MomentPlan,
        n_features: int,
        random_state: np.random.RandomState,
    ) -> FittedComponents:
        """Noise at every step, all of them on the same data."""
        method = self._method(plan, n_features, random_state)
        sigma = 0.0
        while not method.is_complete:
            answers = curator.power_iterations(method.ask())
            method.tell(answers.value)
            sigma = answers.sigma
        return found_by(method, sigma)

    def _method(
        self, plan: MomentPlan, n_features: int, random_state: np.random.RandomState
    ) -> OnlinePowerMethod:
        return OnlinePowerMethod(
            n_features,
            plan.n_components,
            n_restarts=plan.n_restarts,
            max_iter=plan.max_iter,
            random_state=random_state,
        )

    def _fitted(self, found: FittedComponents, n_iter: int) -> Fitted:
        """State of a fit that is complete, and what to warn of."""
        state = {**attributes_of(found), "n_iter_": n_iter}
        return Fitted(state, self._cautions_of_noise(found))

    def _cautions_of_cap(self, n_features: int) -> tuple[Warning, ...]:
        if n_features >= self.n_components:
            return ()
        return (
            UserWarning(
                f"n_components={self.n_components} exceeds the {n_features} features; "
                f"{n_features} components are fitted."
            ),
        )

    def _cautions_of_noise(self, fitted: FittedComponents) -> tuple[Warning, ...]:
        wanted = min(self.n_components, fitted.components.shape[1])
        if fitted.n_resolved >= wanted or math.isinf(self.epsilon):
            return ()
        return (
            NotEnoughDataWarning(
                f"Of {wanted} components asked for, the released moments show "
                f"{fitted.n_resolved} above their noise; {len(fitted.components)} were fitted. "
                "More samples, a larger epsilon, a smaller data_norm or fewer n_components "
                "would help: see forecast()."
            ),
        )

    def _validated(self, X: Any, *, reset: bool) -> Any:
        X = checked_table(self, X, reset=reset)
        return as_counts(X) if self.moment == "single_topic" else as_samples(X)


def attributes_of(found: FittedComponents) -> dict[str, Any]:
    """Fitted state that every fit of components leaves behind."""
    state = {
        "components_": found.components,
        "weights_": found.weights,
        "n_components_": len(found.components),
        "_n_features_out": len(found.components),
    }
    return state if found.variances is None else {**state, "covariances_": found.variances}


def found_by(method: OnlinePowerMethod, sigma: float) -> FittedComponents:
    """What a power method has found from answers with a noise of sigma."""
    weights, vectors = method.components()
    # Noise alone has T(u, u, u) of about sigma, the largest of a few starts three times it.
    return FittedComponents(vectors, weights, int((weights > 4 * sigma).sum()))
