"""How a tensor power method turns its parameters into plans, curators and attributes."""

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from sktensor_dp.estimator.base import PrivateEstimatorMixin
from sktensor_dp.estimator.input_errors import data_free_errors
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.power_method.plan import AFTER_RELEASE, MomentPlan, plan_moments
from sktensor_dp.power_method.recipe import FittedComponents, fit_gaussian_mixture, fit_raw_moments
from sktensor_dp.privacy.curators.documents import DocumentCurator
from sktensor_dp.privacy.curators.samples import SampleCurator, TensorCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.spectral_topics.plan import TopicPlan, plan_topics
from sktensor_dp.spectral_topics.recipe import SpectralFit
from sktensor_dp.statistics.counts import CountChunks, as_counts
from sktensor_dp.statistics.power_iterations import TensorChunk
from sktensor_dp.statistics.samples import SampleChunks, as_samples
from sktensor_dp.tensor.online import OnlinePowerMethod

__all__ = ["PowerLearningMixin", "found_by"]

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

    def _fit(self, chunks: CountChunks | SampleChunks) -> None:
        """Plan, charge, release and set attributes; `chunks` has been validated."""
        self._forget()
        self._warn_of_cap(chunks.n_features)
        random_state = check_random_state(self.random_state)
        # Products are small or bound by memory: threads that wait for each other cost more.
        with threadpool_limits(limits=1, user_api="blas"):
            if isinstance(chunks, CountChunks):
                fitted, report = self._fit_topics(chunks, random_state)
            else:
                fitted, report = self._fit_samples(chunks, random_state)
        self._publish(fitted, report)
        self._warn_of_noise(fitted)

    def _fit_topics(
        self, chunks: CountChunks, random_state: np.random.RandomState
    ) -> tuple[FittedComponents, PrivacyReport]:
        plan = self._topic_plan(chunks.n_units, chunks.n_features)
        pure = self.delta == 0
        self.n_iter_ = self.max_iter or AFTER_RELEASE
        with self._open_curator(
            DocumentCurator, chunks, plan.releases, unit="document", limits={}, pure=pure
        ) as curator:
            fitted = SpectralFit(
                curator, plan, concentration=0.0, geometry="isotropic", random_state=random_state,
                n_restarts=self.n_restarts, max_iter=self.n_iter_,
            ).run()  # fmt: skip
            order = np.argsort(-fitted.weights, kind="stable")
            found = FittedComponents(fitted.topics[order], fitted.weights[order], fitted.n_resolved)
            return found, curator.report()

    def _fit_samples(
        self, chunks: SampleChunks, random_state: np.random.RandomState
    ) -> tuple[FittedComponents, PrivacyReport]:
        plan = self._plan(chunks.n_units, chunks.n_features, self.perturbation)
        offset = self._offset()
        self.n_iter_ = plan.max_iter
        with self._open_curator(
            SampleCurator, chunks, plan.releases, radius=self._radius(), offset=offset
        ) as curator:
            if self.moment == "gaussian_mixture":
                fitted = fit_gaussian_mixture(curator, plan, offset, random_state)
            elif plan.perturbation == "iteration":
                fitted = self._iterated(curator, plan, chunks.n_features, random_state)
            else:
                fitted = fit_raw_moments(curator, plan, chunks.n_features, random_state)
            return fitted, curator.report()

    def _fit_tensor(self, chunk: TensorChunk, n_features: int) -> None:
        """Decompose a tensor whose entries are private."""
        self._forget()
        self._warn_of_cap(n_features)
        plan = self._plan(1, n_features, "iteration")
        releases = ReleasePlan.split(
            self.epsilon, self.delta, {"tensor_power_iterations": 1.0},
            {"tensor_power_iterations": plan.n_components * (plan.max_iter + 1)},
        )  # fmt: skip
        self.n_iter_ = plan.max_iter
        bound = self._bound()
        with self._open_curator(
            TensorCurator, chunk, releases, bound=bound, unit="entry",
            neighbours=f"tensors that differ by {bound:g} in each of the six orders of one entry",
        ) as curator:  # fmt: skip
            random_state = check_random_state(self.random_state)
            fitted = self._iterated(curator, plan, n_features, random_state)
            self._publish(fitted, curator.report())
        self._warn_of_noise(fitted)

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

    def _publish(self, fitted: FittedComponents, report: PrivacyReport) -> None:
        self.components_ = fitted.components
        self.weights_ = fitted.weights
        if fitted.variances is not None:
            self.covariances_ = fitted.variances
        self.n_components_ = self._n_features_out = len(fitted.components)
        self.privacy_report_ = report

    def _forget(self) -> None:
        """Drop what only some fits leave behind."""
        for name in ("_stream", "covariances_", *STREAM_PROGRESS):
            self.__dict__.pop(name, None)

    def _warn_of_cap(self, n_features: int) -> None:
        if n_features < self.n_components:
            warnings.warn(
                f"n_components={self.n_components} exceeds the {n_features} features; "
                f"{n_features} components are fitted.",
                UserWarning,
                stacklevel=4,
            )

    def _warn_of_noise(self, fitted: FittedComponents) -> None:
        wanted = min(self.n_components, fitted.components.shape[1])
        if fitted.n_resolved < wanted and not math.isinf(self.epsilon):
            warnings.warn(
                f"Of {wanted} components asked for, the released moments show "
                f"{fitted.n_resolved} above their noise; {len(fitted.components)} were fitted. "
                "More samples, a larger epsilon, a smaller data_norm or fewer n_components "
                "would help: see plan().",
                NotEnoughDataWarning,
                stacklevel=4,
            )

    def _validated(self, X: Any, *, reset: bool) -> Any:
        with data_free_errors(X):
            X = validate_data(
                self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32, np.int64]
            )
        return as_counts(X) if self.moment == "single_topic" else as_samples(X)


def found_by(method: OnlinePowerMethod, sigma: float) -> FittedComponents:
    """What a power method has found from answers with a noise of sigma."""
    weights, vectors = method.components()
    # Noise alone has T(u, u, u) of about sigma, the largest of a few starts three times it.
    return FittedComponents(vectors, weights, int((weights > 4 * sigma).sum()))
