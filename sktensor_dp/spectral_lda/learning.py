"""How a topic model turns its parameters into a plan, a curator and fitted attributes."""

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from sktensor_dp.estimator.base import PrivateEstimatorMixin
from sktensor_dp.estimator.input_errors import data_free_errors
from sktensor_dp.estimator.parameters import Number
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.privacy.curators.documents import CLIPPED_NORMS, DocumentCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.spectral_topics.plan import TopicPlan, plan_topics
from sktensor_dp.spectral_topics.recipe import FittedTopics, SpectralFit
from sktensor_dp.statistics.counts import CountChunks, as_counts

__all__ = ["TopicLearningMixin"]

Floats = NDArray[np.float64]


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

    def _fit(self, chunks: CountChunks) -> FittedTopics:
        """Plan, charge, release and set attributes; `chunks` has been validated."""
        plan = self._plan(chunks.n_units, chunks.n_features)
        if plan.n_components < self.n_components:
            warnings.warn(
                f"n_components={self.n_components} exceeds the {chunks.n_features} features; "
                f"{plan.n_components} topics are fitted.",
                UserWarning,
                stacklevel=3,
            )
        self.__dict__.pop("_stream", None)
        with (
            # Its products are small or bound by memory: threads that wait for each other
            # made fits ten times slower on a busy machine, and none faster on an idle one.
            threadpool_limits(limits=1, user_api="blas"),
            self._open(chunks, plan.releases) as curator,
        ):
            fitted = SpectralFit(
                curator,
                plan,
                concentration=self._concentration(),
                geometry=self.noise_geometry,
                random_state=check_random_state(self.random_state),
            ).run()
            self.clip_norm_ = dict(curator.limits)
            self._publish(fitted, curator.report())
        if fitted.n_resolved < plan.n_components and not math.isinf(self.epsilon):
            fitted_count = f"{self.n_components_} were fitted"
            if self.n_components_ > fitted.n_resolved:
                fitted_count += ", of which the others are uncertain"
            warnings.warn(
                f"Of {plan.n_components} topics asked for, the released second moment shows "
                f"{fitted.n_resolved} above its noise; {fitted_count}. More documents, a larger "
                "epsilon or fewer n_components would help: see plan().",
                NotEnoughDataWarning,
                stacklevel=3,
            )
        return fitted

    def _open(
        self, chunks: CountChunks, plan: ReleasePlan, *, charge: bool = True
    ) -> DocumentCurator:
        return self._open_curator(
            DocumentCurator,
            chunks,
            plan,
            charge=charge,
            limits=self._limits(),
            pure=self.delta == 0,
        )

    def _publish(self, fitted: FittedTopics, report: PrivacyReport) -> None:
        concentration = self._concentration()
        self.components_ = fitted.topics
        self.topic_prior_ = fitted.weights * (concentration if concentration > 0 else 1.0)
        self.unigram_ = fitted.unigram
        self.n_components_ = self._n_features_out = len(fitted.topics)
        self.privacy_report_ = report

    def _concentration(self) -> float:
        """Sum of the Dirichlet prior over topic shares."""
        if self.doc_topic_prior is None:
            return 1.0
        return float(self.doc_topic_prior) * self.n_components

    def _limits(self) -> dict[str, float]:
        if self.clip_norm == "auto":
            return {}
        assert isinstance(self.clip_norm, Mapping)
        # Noise in proportion to an infinite limit would be infinite.
        wanted = Number(0, closed="right" if math.isinf(self.epsilon) else "neither")
        for name, limit in self.clip_norm.items():
            if name not in CLIPPED_NORMS or not wanted.accepts(limit):
                raise ValueError(
                    "The 'clip_norm' parameter of PrivateSpectralLDA must be 'auto' or map some "
                    f"of {list(CLIPPED_NORMS)} to finite numbers > 0. "
                    f"Got {self.clip_norm!r} instead."
                )
        return dict(self.clip_norm)

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
        with data_free_errors(X):
            X = validate_data(
                self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32, np.int64]
            )
        return as_counts(X)
