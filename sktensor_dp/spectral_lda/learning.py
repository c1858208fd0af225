"""How a topic model turns its parameters into a plan, a curator and fitted attributes."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.estimator.base import Fitted, PlannedFit, PrivateEstimatorMixin, columns_of
from sktensor_dp.estimator.input_errors import checked_table
from sktensor_dp.estimator.parameters import Number
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.privacy.curators.documents import CLIPPED_NORMS, DocumentCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.spectral_lda.stream import StreamState, continue_stream
from sktensor_dp.spectral_topics.plan import TopicPlan, check_topics_fit, plan_topics
from sktensor_dp.spectral_topics.recipe import FittedTopics, TopicOptions, fit_topics
from sktensor_dp.statistics.counts import CountChunks, as_counts

__all__ = ["TopicLearningMixin"]

Floats = NDArray[np.float64]

# Shares drawn with a larger prior are equal to ten digits. A sum of priors beyond its limit is
# taken for it, whatever n_components is, and a positive prior below for the least of which the
# digamma function can be computed.
LARGEST_PRIOR, LEAST_PRIOR, LARGEST_CONCENTRATION = 1e10, 1e-30, 1e16
# Products of three numbers in the scale of a limit neither overflow nor vanish.
LIMITS = (1e-40, 1e40)


class TopicLearningMixin(PrivateEstimatorMixin):
    """Fitting of topics by the parameters of :class:`~sktensor_dp.PrivateSpectralLDA`."""

    n_components: int
    epsilon: float
    delta: float
    doc_topic_prior: float | None
    perturbation: str
    noise_geometry: str
    n_refinements: int | str
    clip_norm: str | Mapping[str, float]
    random_state: Any
    clip_norm_: Mapping[str, float]

    def _planned_fit(
        self, chunks: CountChunks, columns: Mapping[str, Any], *, begins: bool = False
    ) -> PlannedFit[DocumentCurator]:
        """Plan a fit of validated data, or with `begins` of the first batch of a stream."""
        plan = self._plan(chunks.n_units, chunks.n_features)
        check_topics_fit(plan, chunks.n_features, self.epsilon)
        budget, payer = (self.epsilon, self.delta), self._payer()

        def recipe(curator: DocumentCurator) -> Fitted:
            options = TopicOptions(self._concentration(), self.noise_geometry, self.random_state)
            fitted = fit_topics(curator, plan, options)
            state = {**self._attributes(fitted), "clip_norm_": dict(curator.limits)}
            if begins:
                state["_stream"] = StreamState.after(fitted, budget, payer)
            return Fitted(state, self._cautions(fitted, plan))

        return PlannedFit(
            DocumentCurator, chunks, plan.releases, recipe, columns, self._options(),
            self._cautions_of_cap(plan, chunks.n_features),
        )  # fmt: skip

    def _planned_batch(
        self, chunks: CountChunks, stream: StreamState
    ) -> PlannedFit[DocumentCurator]:
        """Plan a step on one more batch of a stream."""
        plan = ReleasePlan.split(self.epsilon, self.delta, {"expected_counts": 1.0})
        limits = self.clip_norm_

        def recipe(curator: DocumentCurator) -> Fitted:
            after = continue_stream(curator, stream, self._concentration(), limits["counts"])
            return Fitted(
                {**self._attributes(after.fitted), "clip_norm_": limits, "_stream": after}
            )

        # Another accountant keeps another ledger, which knows nothing of the first batch.
        options = {**self._options(), "charge": self._payer() is not stream.accountant}
        return PlannedFit(
            DocumentCurator, chunks, plan, recipe, columns_of(self), options,
            earlier=self.privacy_report_,
        )  # fmt: skip

    def _options(self) -> dict[str, Any]:
        return {"limits": self._limits(), "pure": self.delta == 0}

    def _attributes(self, fitted: FittedTopics) -> dict[str, Any]:
        concentration = self._concentration()
        return {
            "components_": fitted.topics,
            "topic_prior_": fitted.weights * (concentration if concentration > 0 else 1.0),
            "unigram_": fitted.unigram,
            "n_components_": len(fitted.topics),
            "_n_features_out": len(fitted.topics),
        }

    def _cautions_of_cap(self, plan: TopicPlan, n_features: int) -> tuple[Warning, ...]:
        if plan.n_components == self.n_components:
            return ()
        return (
            UserWarning(
                f"n_components={self.n_components} exceeds the {n_features} features; "
                f"{plan.n_components} topics are fitted."
            ),
        )

    def _cautions(self, fitted: FittedTopics, plan: TopicPlan) -> tuple[Warning, ...]:
        if fitted.n_resolved >= plan.n_components or math.isinf(self.epsilon):
            return ()
        fitted_count = f"{len(fitted.topics)} were fitted"
        if len(fitted.topics) > fitted.n_resolved:
            fitted_count += ", of which the others are uncertain"
        return (
            NotEnoughDataWarning(
                f"Of {plan.n_components} topics asked for, the released second moment shows "
                f"{fitted.n_resolved} above its noise; {fitted_count}. More documents, a larger "
                "epsilon or fewer n_components would help: see forecast()."
            ),
        )

    def _concentration(self) -> float:
        """Sum of the Dirichlet prior over topic shares."""
        if self.doc_topic_prior is None:
            return 1.0
        prior = float(self.doc_topic_prior)
        if prior == 0:
            return 0.0
        return min(max(prior, LEAST_PRIOR) * float(self.n_components), LARGEST_CONCENTRATION)

    def _limits(self) -> dict[str, float]:
        if self.clip_norm == "auto":
            return {}
        assert isinstance(self.clip_norm, Mapping)
        for name, limit in self.clip_norm.items():
            # Noise in proportion to an infinite limit would be infinite.
            allowed = Number(*LIMITS).accepts(limit)
            allowed = allowed or (math.isinf(self.epsilon) and Number(math.inf).accepts(limit))
            if name not in CLIPPED_NORMS or not allowed:
                raise ValueError(
                    "The 'clip_norm' parameter of PrivateSpectralLDA must be 'auto' or map some "
                    f"of {list(CLIPPED_NORMS)} to numbers from {LIMITS[0]:g} to {LIMITS[1]:g}. "
                    f"Got {self.clip_norm!r} instead."
                )
        return {name: float(limit) for name, limit in self.clip_norm.items()}

    def _plan(self, n_samples: int, n_features: int) -> TopicPlan:
        return plan_topics(
            n_samples,
            n_features,
            self.n_components,
            epsilon=self.epsilon,
            delta=self.delta,
            perturbation=self.perturbation,
            n_refinements=None if self.n_refinements == "auto" else int(self.n_refinements),
            limits=self._limits(),
        )

    def _validated(self, X: Any, *, reset: bool) -> sp.csr_matrix:
        X = checked_table(self, X, reset=reset)
        return as_counts(X)
