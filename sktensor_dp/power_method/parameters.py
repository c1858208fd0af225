"""What a tensor power method is asked for, and how that becomes a plan and a fit."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from sktensor_dp.estimator.base import (
    COUNTS,
    NEIGHBOURS,
    NEIGHBOURS_BEFORE,
    NONE,
    Fitted,
    PlannedFit,
    PrivateEstimatorMixin,
    cautions_of_cap,
    columns_of,
)
from sktensor_dp.estimator.grouped_rows import (
    BATCHES_BEFORE,
    GROUP_CONSTRAINTS,
    GROUPS_BEFORE,
    STREAM_CONSTRAINTS,
    batch_budget,
    check_same_unit,
)
from sktensor_dp.estimator.hooks import Neighbours
from sktensor_dp.estimator.inputs import (
    Numeric,
    as_validated,
    checked_grouping,
    checked_table,
    row_choice,
)
from sktensor_dp.estimator.lazy_tables import lazy_table
from sktensor_dp.estimator.parameters import Constraint, InstanceOf, Number, OneOf
from sktensor_dp.power_method.inputs import NOT_AT_RANDOM, random_batches
from sktensor_dp.power_method.plan import AFTER_RELEASE, MomentPlan, plan_moments
from sktensor_dp.power_method.recipe import (
    MomentOptions,
    fit_by_steps,
    fit_gaussian_mixture,
    fit_raw_moments,
    learn,
    single_topics,
)
from sktensor_dp.power_method.stream import ComponentStream, cautions_of_stream, learn_batch
from sktensor_dp.power_method.worst_case import worst_samples
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.curators.documents import DocumentCurator
from sktensor_dp.privacy.curators.samples import SampleCurator
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.spectral_topics.plan import TopicPlan, plan_topics
from sktensor_dp.spectral_topics.recipe import fit_topics
from sktensor_dp.spectral_topics.released import TopicOptions
from sktensor_dp.statistics.counts import CountChunks, as_counts
from sktensor_dp.statistics.reading import read_each
from sktensor_dp.statistics.sample_moments import LiftedBall, SampleChunks, as_samples

# Beyond, the second moment of all features takes 2 GiB.
LARGEST_SECOND_MOMENT = 2**14
# Constant coordinate of a mixture's samples, in radii: small enough to cost little
# noise, large enough that scales are read off it.
OFFSET = 0.5
BY_STEPS = ("iteration", "stream")
PERTURBATIONS = ("auto", "whitened_tensor", "moment_tensor", *BY_STEPS)


class ComponentParameters(PrivateEstimatorMixin):
    """Parameters of a tensor power method, the plans they make, and the fit."""

    _later_parameters: ClassVar[Mapping[str, Any]] = {
        **GROUPS_BEFORE,
        **BATCHES_BEFORE,
        **NEIGHBOURS_BEFORE,
    }
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

    def _radius(self) -> float:
        assert self.data_norm is not None
        return float(self.data_norm)

    def _offset(self) -> float:
        return OFFSET * self._radius() if self.moment == "gaussian_mixture" else 0.0

    def _plan(
        self,
        n_samples: int,
        n_features: int,
        perturbation: str,
        budget: tuple[float, float] | None = None,
        *,
        to_fit: bool = False,
    ) -> MomentPlan:
        epsilon, delta = budget or (self.epsilon, self.delta)
        return plan_moments(
            n_samples, n_features, self.n_components, epsilon=epsilon, delta=delta,
            perturbation=self._chosen(perturbation, n_features), whiten=self.whiten,
            n_restarts=self.n_restarts, max_iter=self.max_iter, to_fit=to_fit,
        )  # fmt: skip

    def _topic_plan(self, n_samples: int, n_features: int, apart: bool | None = None) -> TopicPlan:
        moment = self.perturbation == "moment_tensor"
        return plan_topics(
            n_samples, n_features, self.n_components, epsilon=self.epsilon, delta=self.delta,
            perturbation="moment_tensor" if moment else "whitened_tensor", n_refinements=None,
            limits={}, apart=apart,
        )  # fmt: skip

    def _chosen(self, asked: str, n_features: int) -> str:
        """Where noise is added, which `"auto"` leaves to the number of features."""
        if asked != "auto":
            return asked
        return "whitened_tensor" if n_features <= LARGEST_SECOND_MOMENT else "stream"

    def _splits_rows(self, n_features: int) -> bool:
        """Whether rows that are fitted at once are split at random into the batches of a stream."""
        chosen = self._chosen(self.perturbation, n_features)
        return self.moment != "single_topic" and chosen == "stream"

    def fit(
        self,
        X: ArrayLike | sp.spmatrix,
        y: Any = None,
        *,
        groups: ArrayLike | None = None,
        n_samples: int | None = None,
        **unsupported: Any,
    ) -> Self:
        """Learn components.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Samples; counts of words for ``moment="single_topic"``. Of a Dask array or data
            frame nothing is computed before the charge: see ``docs/scale.md``.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), optional
            Whose sample each row is: integers or strings. The group is then what is
            protected, with all its samples; their number is private.
        n_samples : int or None, default=None
            For a Dask `X` whose number of rows is not known, or with `groups`: the number of
            rows, or of groups; public.
        **unsupported : object
            Refused: ``sample_weight`` would be read from the data.

        Returns
        -------
        self : PrivateTensorPowerMethod
            The fitted model.

        Raises
        ------
        TypeError
            If an argument is not supported.
        ValueError
            If a parameter or their combination is wrong, `X` is not a matrix of finite
            numbers (counts), or `groups` is not one label per row, of at least two groups;
            no budget is spent.
        BudgetError
            If the accountant has too little left; no budget is spent.
        """
        witness = self._check_call(X, n_samples, unsupported)
        self._check_combination(PERTURBATIONS, "fit")
        if hasattr(X, "to_delayed"):
            chunks = self._lazy_chunks(witness, X, groups, n_samples, reset=True)
            return self._live_on(chunks, partial(self._fit_of, chunks, columns_of(witness)))
        X = witness._validated(X, reset=True, fits=True, grouped=groups is not None)
        grouping = {} if groups is None else checked_grouping(groups, X.shape[0], self)
        if self._splits_rows(X.shape[1]):
            plan, coins = self._plan(1, X.shape[1], "stream"), self._number_is_private
            batches = random_batches(X, plan, self.random_state, by_coins=coins, **grouping)
            return self._fit_stream(batches, witness)
        chunks = self._as_chunks(X, *X.shape, **grouping)
        return self._live_on(chunks, partial(self._fit_of, chunks, columns_of(witness)))

    def _as_chunks(
        self, X: Any, n_samples: int | None, n_features: int, **grouping: Any
    ) -> CountChunks | SampleChunks:
        kind = CountChunks if self.moment == "single_topic" else SampleChunks
        return kind(X, n_samples, n_features, prepared=Numeric, **grouping)

    def _parts(self, X: Any, n_samples: int | None, n_features: int) -> CountChunks | SampleChunks:
        """What is read part by part, with labels or without."""
        choice = row_choice(self.max_rows_per_group)
        return self._as_chunks(X, n_samples, n_features, choice=choice)

    def _fit_of(
        self, chunks: CountChunks | SampleChunks, columns: Mapping[str, Any], n_units: int
    ) -> PlannedFit[Any]:
        """Plan a fit of so many units, which are read as often as needed."""
        of = self._planned_topics if isinstance(chunks, CountChunks) else self._planned_samples
        return of(n_units, chunks, columns)  # type: ignore[arg-type]

    def _planned_topics(
        self, n_units: int, chunks: CountChunks, columns: Mapping[str, Any]
    ) -> PlannedFit[DocumentCurator]:
        plan = self._topic_plan(n_units, chunks.n_features, chunks.apart)
        n_iter = self.max_iter or AFTER_RELEASE
        options = TopicOptions(0.0, "isotropic", self.random_state, self.n_restarts, n_iter)
        leave = partial(single_topics, plan=plan, n_iter=n_iter)
        return PlannedFit(
            DocumentCurator, chunks, plan.releases,
            partial(fit_topics, plan=plan, options=options, leave=leave),
            columns, {"unit": "document", "known": {}},
            cautions_of_cap(self.n_components, chunks.n_features),
        )  # fmt: skip

    def _planned_samples(
        self, n_units: int, chunks: SampleChunks, columns: Mapping[str, Any]
    ) -> PlannedFit[SampleCurator]:
        radius, options = self._radius(), self._options(chunks.n_features)
        plan = self._plan(n_units, chunks.n_features, self.perturbation, to_fit=True)
        recipe = fit_by_steps if plan.perturbation == "iteration" else fit_raw_moments
        if self.moment == "gaussian_mixture":
            recipe = fit_gaussian_mixture
        return PlannedFit(
            SampleCurator, chunks, plan.releases,
            partial(learn, recipe=recipe, plan=plan, options=options, n_iter=plan.max_iter),
            columns, {"known": LiftedBall(radius, options.offset)},
            cautions_of_cap(self.n_components, chunks.n_features),
        )  # fmt: skip

    def _planned_batch(
        self,
        chunks: SampleChunks,
        stream: ComponentStream | None,
        columns: Mapping[str, Any],
        earlier: PrivacyReport | None = None,
        n_batches: int = 1,
    ) -> PlannedFit[SampleCurator]:
        """Plan one step on a batch, at the budget of each of those that a unit may be in."""
        if earlier is not None:
            check_same_unit(earlier, chunks.grouped, self.neighbours)
        planned = self._planned_by_number(
            chunks, lambda n_units: self._step_of(n_units, chunks, stream, columns, n_batches)
        )
        return replace(planned, earlier=earlier)

    def _step_of(
        self,
        n_units: int,
        chunks: SampleChunks,
        stream: ComponentStream | None,
        columns: Mapping[str, Any],
        n_batches: int,
    ) -> PlannedFit[SampleCurator]:
        """Plan one step on a batch of so many units."""
        budget = batch_budget(self.epsilon, self.delta, n_batches)
        plan = self._plan(n_units, chunks.n_features, "stream", budget, to_fit=True)
        plan = replace(plan, releases=plan.releases.repeated(n_batches))
        options = self._options(chunks.n_features)
        charged, payer = (self.epsilon, self.delta, self._radius()), self._payer()
        # Another accountant keeps another ledger, which knows nothing of the first batch.
        charge = stream is None or payer is not stream.accountant
        return PlannedFit(
            SampleCurator, chunks, plan.releases,
            lambda curator: learn_batch(curator, plan, options, stream, charged, payer), columns,
            {"known": LiftedBall(self._radius()), "charge": charge},
            cautions_of_cap(self.n_components, chunks.n_features) if stream is None else (),
        )  # fmt: skip

    def _lazy_chunks(
        self, witness: Any, X: Any, groups: Any, n_samples: Any, *, reset: bool, batch: bool = False
    ) -> Any:
        """Rows that Dask has not computed yet."""
        table = lazy_table(witness, X, groups, n_samples, reset=reset)
        if not batch and self._splits_rows(table.n_features):
            raise ValueError(NOT_AT_RANDOM)
        return self._parts(table.partitions, table.n_units, table.n_features)

    def _batch(
        self, witness: Any, X: Any, groups: Any, n_samples: Any = None, *, first: bool
    ) -> SampleChunks:
        """Validated samples of one batch."""
        if hasattr(X, "to_delayed"):
            chunks = self._lazy_chunks(witness, X, groups, n_samples, reset=first, batch=True)
            return chunks
        X = witness._validated(X, reset=first, fits=True, grouped=groups is not None)
        grouping = {} if groups is None else checked_grouping(groups, X.shape[0], self)
        return SampleChunks(X, *X.shape, **grouping)

    def _fit_stream(
        self, batches: Iterable[SampleChunks], witness: Any, n_batches: int = 1
    ) -> Self:
        """One step on each of some validated batches; published once all are read."""
        fitted: Mapping[str, Any] = {}
        for chunks in read_each(batches, "The source of chunks"):
            planned = self._planned_batch(
                chunks, fitted.get("_stream"), columns_of(witness), fitted.get("privacy_report_"),
                n_batches,
            )  # fmt: skip
            fitted = self._paid(planned).attributes
        if not fitted:
            raise ValueError("the source of chunks yielded none.")
        cautions = cautions_of_stream(fitted["_stream"], self.n_components)
        return self._end(Fitted(fitted, cautions))

    def _options(self, n_features: int) -> MomentOptions:
        return MomentOptions(n_features, self._offset(), self.random_state)

    def _validated(self, X: Any, *, reset: bool, fits: bool = False, grouped: bool = False) -> Any:
        X = checked_table(self, X, reset=reset, fits=fits, grouped=grouped)
        return as_validated(as_counts if self.moment == "single_topic" else as_samples, X)

    def _refuse_rows(self, X: Any, y: Any, *, grouped: bool, searched: Collection[str]) -> None:
        read = checked_table if "moment" in searched else type(self)._validated
        read(self, X, reset=True, fits=True, grouped=grouped)

    def _unit_score(self) -> str:
        return "log_likelihood" + "_per_token" * (self.moment == "single_topic")

    def _worst_case(self, n_units: int | None) -> Neighbours:
        shuffled_by = self.random_state if self.perturbation == "stream" else None
        return worst_samples(self.data_norm, shuffled_by, n_units, self.neighbours)

    @property
    def _input_tags(self) -> Mapping[str, bool]:  # type: ignore[override]
        return COUNTS if self.moment == "single_topic" else {"sparse": True}
