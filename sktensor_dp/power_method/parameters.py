"""What a tensor power method is asked for."""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from sktensor_dp.estimator.base import (
    COUNTS,
    NEIGHBOURS,
    NONE,
    PrivateEstimatorMixin,
)
from sktensor_dp.estimator.grouped_rows import (
    GROUP_CONSTRAINTS,
    STREAM_CONSTRAINTS,
)
from sktensor_dp.estimator.hooks import Neighbours
from sktensor_dp.estimator.inputs import as_validated, checked_table
from sktensor_dp.estimator.parameters import Constraint, InstanceOf, Number, OneOf
from sktensor_dp.power_method.worst_case import worst_samples
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.queries.counts import CountChunks, as_counts
from sktensor_dp.queries.samples import SampleChunks, as_samples

# Beyond, the second moment of all features takes 2 GiB.
LARGEST_SECOND_MOMENT = 2**14
BY_STEPS = ("iteration", "stream")
PERTURBATIONS = ("auto", "whitened_tensor", "moment_tensor", *BY_STEPS)


class ComponentParameters(PrivateEstimatorMixin):
    """Parameters of a tensor power method, and the rows that they describe."""

    _preserves_dtype = True
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "n_components": [Number(1, math.inf, integer=True)],
        "moment": [OneOf("raw", "single_topic", "gaussian_mixture")],
        "whiten": [InstanceOf(bool)],
        "perturbation": [OneOf(*PERTURBATIONS)],
        # Sixth powers of it, and of a small share of it, stay numbers that can be held.
        "data_norm": [Number(1e-40, 1e40), NONE],
        "n_restarts": [Number(1, math.inf, integer=True)],
        "max_iter": [Number(1, math.inf, integer=True), NONE],
        **GROUP_CONSTRAINTS,
        **STREAM_CONSTRAINTS,
        **NEIGHBOURS,
    }

    def __init__(
        self,
        n_components: int = 5,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        moment: str = "raw",
        whiten: bool = True,
        perturbation: str = "auto",
        data_norm: float | None = None,
        n_restarts: int = 10,
        max_iter: int | None = None,
        max_rows_per_group: int | None = None,
        max_batches_per_group: int = 1,
        neighbours: str = "replace_one",
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.moment = moment
        self.whiten = whiten
        self.perturbation = perturbation
        self.data_norm = data_norm
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.max_rows_per_group = max_rows_per_group
        self.max_batches_per_group = max_batches_per_group
        self.neighbours = neighbours
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _check_combination(self, allowed: Iterable[str], method: str) -> None:
        """Raise unless the parameters make sense together, for one of the fit methods."""
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

    def _check_width(self, n_features: int) -> None:
        """Refuse more Gaussians than two moments can tell apart."""
        if self.moment == "gaussian_mixture" and self.n_components > n_features:
            raise ValueError(
                f"n_components={self.n_components} Gaussians cannot be told apart in "
                f"{n_features} features: their means have to be affinely independent, and one "
                f"direction is left for variances. Pass n_components of at most {n_features}."
            )

    @property
    def _kind(self) -> type[CountChunks] | type[SampleChunks]:
        """What rows are taken for."""
        return CountChunks if self.moment == "single_topic" else SampleChunks

    @property
    def _widest(self) -> float:
        """Features beyond which rows fitted at once are split at random, for a stream."""
        if self.moment != "raw" or self.perturbation not in ("auto", "stream"):
            return math.inf
        return LARGEST_SECOND_MOMENT if self.perturbation == "auto" else 0

    def _validated(self, X: Any, *, reset: bool, fits: bool = False, grouped: bool = False) -> Any:
        X = checked_table(self, X, reset=reset, fits=fits, grouped=grouped)
        return as_validated(as_counts if self.moment == "single_topic" else as_samples, X)

    def _refuse_rows(self, X: Any, y: Any, *, grouped: bool, searched: Collection[str]) -> None:
        read = checked_table if "moment" in searched else type(self)._validated
        X = read(self, X, reset=True, fits=True, grouped=grouped)
        if not {"moment", "n_components"} & set(searched):
            self._check_width(X.shape[1])

    def _unit_score(self) -> str:
        return "log_likelihood" + "_per_token" * (self.moment == "single_topic")

    def _worst_case(self, n_units: int | None) -> Neighbours:
        shuffled_by = self.random_state if self.perturbation == "stream" else None
        return worst_samples(self.data_norm, shuffled_by, n_units, self.neighbours)

    @property
    def _input_tags(self) -> Mapping[str, bool]:  # type: ignore[override]
        return COUNTS if self.moment == "single_topic" else {"sparse": True}
