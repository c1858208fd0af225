"""What a topic model is asked for, and how that becomes a plan and a fit."""

import math
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.estimator.base import (
    COUNTS,
    NEIGHBOURS,
    NONE,
    Neighbours,
    PlannedFit,
    PrivateEstimatorMixin,
    columns_of,
    warnings_of_cap,
)
from sktensor_dp.estimator.inputs import (
    as_validated,
    check_same_unit,
    checked_table,
    row_chunks,
)
from sktensor_dp.estimator.parameters import Constraint, InstanceOf, Number, OneOf
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.curator import LARGEST_COUNT
from sktensor_dp.privacy.curators.documents import CLIPPED_NORMS, DocumentCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.counts import CountChunks, as_counts
from sktensor_dp.spectral_lda.public_topics import (
    DataFrame,
    check_public_topics,
    frequencies_of_topics,
    public_topics,
)
from sktensor_dp.spectral_lda.recipe import learn_batch, learned
from sktensor_dp.spectral_lda.stream import TopicStream
from sktensor_dp.spectral_lda.word_frequencies import expected_frequencies
from sktensor_dp.spectral_lda.worst_case import worst_documents
from sktensor_dp.spectral_topics.plan import TopicPlan, plan_topics
from sktensor_dp.spectral_topics.recipe import fit_topics
from sktensor_dp.spectral_topics.released import TopicOptions
from sktensor_dp.topics.concentration import USUAL

# Shares drawn with a larger prior are equal to ten digits. A sum of priors beyond its limit is
# taken for it, whatever n_components is, and a positive prior below for the least of which the
# digamma function can be computed.
LARGEST_PRIOR, LEAST_PRIOR, LARGEST_CONCENTRATION = 1e10, 1e-30, 1e16
# Products of three numbers in the scale of a limit neither overflow nor vanish.
LIMITS = (1e-40, 1e40)


class TopicParameters(PrivateEstimatorMixin):
    """Parameters of a topic model, the plan they make with public sizes, and its fit."""

    clip_norm_: Mapping[str, float]
    _unit = "document"
    _input_tags = COUNTS
    _preserves_dtype = True
    _may_clash = ("public_components",)
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "n_components": [Number(1, math.inf, integer=True)],
        "doc_topic_prior": [Number(0, LARGEST_PRIOR), NONE, OneOf("auto")],
        "word_frequencies": [NONE, InstanceOf(Mapping, np.ndarray, list, tuple)],
        "public_components": [NONE, InstanceOf(Mapping, np.ndarray, list, tuple), DataFrame()],
        "perturbation": [OneOf("whitened_tensor", "moment_tensor")],
        "n_refinements": [Number(0, math.inf, integer=True), OneOf("auto")],
        "clip_norm": [OneOf("auto"), InstanceOf(Mapping)],
        **NEIGHBOURS,
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        doc_topic_prior: float | str | None = "auto",
        word_frequencies: Mapping[str, float] | ArrayLike | None = None,
        public_components: Mapping[str, ArrayLike] | ArrayLike | None = None,
        perturbation: str = "whitened_tensor",
        n_refinements: int | str = "auto",
        clip_norm: str | Mapping[str, float] = "auto",
        neighbours: str = "replace_one",
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.doc_topic_prior = doc_topic_prior
        self.word_frequencies = word_frequencies
        self.public_components = public_components
        self.perturbation = perturbation
        self.n_refinements = n_refinements
        self.clip_norm = clip_norm
        self.neighbours = neighbours
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike | sp.spmatrix,
        y: Any = None,
        *,
        groups: ArrayLike | None = None,
        n_samples: int | None = None,
        **unsupported: Any,
    ) -> Self:
        """Learn topics.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Counts of words in documents. Of a Dask array (blocks dense or of scipy.sparse) or
            data frame nothing is computed before the charge, and no more than sums leaves
            the workers: see ``docs/scale.md``.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), optional
            Whose document each row is: integers or strings. The group is then what is
            protected, with all its documents; their number is private. Of a Dask `X` they
            may be a Dask array or series with its partitions; rows are shuffled by them.
        n_samples : int or None, default=None
            For a Dask `X` whose number of rows is not known, or with `groups`: the number of
            rows, or of groups, in all partitions together; public, and held against them.
        **unsupported : object
            Refused: ``sample_weight`` would be read from the data.

        Returns
        -------
        self : PrivateSpectralLDA
            The fitted model.

        Raises
        ------
        TypeError
            If an argument is not supported.
        ValueError
            If a parameter is wrong, `X` does not hold counts, or `groups` is not one label
            per row, of at least two groups; no budget is spent.
        BudgetError
            If the accountant has too little left; no budget is spent.
        """
        checked = self._check_call(X, n_samples, unsupported)
        chunks = row_chunks(self, checked, CountChunks, X, groups, n_samples)
        return self._run_counted(chunks, partial(self._fit_of, chunks, columns_of(checked)))

    def _plan(
        self,
        n_samples: int,
        n_features: int,
        apart: bool | None = None,
    ) -> TopicPlan:
        return plan_topics(
            n_samples,
            n_features,
            self.n_components,
            epsilon=self.epsilon,
            delta=self.delta,
            perturbation=self.perturbation,
            n_refinements=None if self.n_refinements == "auto" else int(self.n_refinements),
            limits=self._limits(),
            with_public=self.public_components is not None,
            apart=apart,
        )

    def _fit_of(
        self,
        chunks: CountChunks,
        columns: Mapping[str, Any],
        n_units: int,
        *,
        begins: bool = False,
    ) -> PlannedFit[DocumentCurator]:
        """Plan a fit of so many units, or with `begins` of the first batch of a stream."""
        options, limits = self._options(chunks.n_features, columns), self._limits()
        plan = self._plan(n_units, chunks.n_features, chunks.apart)
        notes: tuple[str, ...] = ()
        if options.public_topics is not None:
            # A number below the largest one is that of a released count.
            counted = self.neighbours == "add_remove" and n_units < LARGEST_COUNT
            notes = _notes_on_public(plan, counted=counted)
        budget = (self.epsilon, self.delta) if begins else None
        leave = partial(learned, plan=plan, budget=budget)
        return PlannedFit(
            DocumentCurator, self._joined(chunks, plan) if chunks.joinable else chunks,
            plan.releases,
            partial(fit_topics, plan=plan, options=options, leave=leave), columns,
            {"known": limits},
            warnings_of_cap(self.n_components, chunks.n_features, "topics"), notes,
        )  # fmt: skip

    def _check_batch(self, chunks: CountChunks, stream: TopicStream) -> None:
        check_same_unit(self.privacy_report_, chunks.grouped, self.neighbours)

    def _step_of(
        self, chunks: CountChunks, stream: TopicStream, n_units: int
    ) -> PlannedFit[DocumentCurator]:
        """Plan a step on a batch of so many units."""
        plan = ReleasePlan.split(self.epsilon, self.delta, {"expected_counts": 1.0})
        concentration, limits = self._fitted_concentration(), self.clip_norm_
        if chunks.joinable:
            chunks = self._joined(chunks, self._plan(n_units, chunks.n_features))
        frequencies, _ = self._known_words(chunks.n_features, columns_of(self))
        return PlannedFit(
            DocumentCurator, chunks, plan,
            lambda curator: learn_batch(curator, stream, concentration, limits, frequencies),
            columns_of(self),
            {"known": self._limits(), "ticket": stream.ticket},
            earlier=self.privacy_report_,
        )  # fmt: skip

    def _joined(self, chunks: CountChunks, plan: TopicPlan) -> CountChunks:
        """Make one document of a group's where public numbers advise it."""
        joins = plan.joins_groups and self._concentration() != 0
        return chunks.joined() if joins else chunks

    def _options(self, n_features: int, columns: Mapping[str, Any]) -> TopicOptions:
        frequencies, topics = self._known_words(n_features, columns)
        return TopicOptions(
            self._concentration(),
            self.random_state,
            word_frequencies=frequencies,
            public_topics=topics,
        )

    def _known_words(
        self, n_features: int, columns: Mapping[str, Any]
    ) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """Public frequencies and topics in the order of the columns."""
        names, topics = columns.get("feature_names_in_"), None
        if self.public_components is not None:
            most = min(self.n_components, n_features)
            topics = public_topics(self.public_components, most, n_features, names)
        if self.word_frequencies is not None:
            return expected_frequencies(self.word_frequencies, n_features, names), topics
        # If only topics are public, theirs.
        return None if topics is None else frequencies_of_topics(topics), topics

    def _check_public(self) -> None:
        if self.public_components is not None:
            check_public_topics(self.public_components, self.n_components)

    def _concentration(self) -> float | None:
        """Sum of the Dirichlet prior over topic shares; None where it is to be estimated."""
        if self.doc_topic_prior == "auto":
            return None
        if self.doc_topic_prior is None:
            return 1.0
        prior = float(self.doc_topic_prior)
        if prior == 0:
            return 0.0
        return min(max(prior, LEAST_PRIOR) * float(self.n_components), LARGEST_CONCENTRATION)

    def _assumed_concentration(self) -> float:
        """What is assumed before there is data."""
        asked = self._concentration()
        return USUAL if asked is None else asked

    def _fitted_concentration(self) -> float:
        """Sum of the Dirichlet prior in use."""
        return float(self.doc_topic_prior_) * len(self.topic_prior_)  # type: ignore[attr-defined]

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

    def _validated(
        self, X: Any, *, reset: bool, fits: bool = False, grouped: bool = False
    ) -> sp.csr_matrix:
        X = checked_table(self, X, reset=reset, fits=fits, grouped=grouped)
        return as_validated(as_counts, X)

    def _refuse_rows(self, X: Any, y: Any, *, grouped: bool, searched: Collection[str]) -> None:
        self._validated(X, reset=True, fits=True, grouped=grouped)

    def _unit_score(self) -> str:
        return "log_likelihood_per_token"

    def _worst_case(self, n_units: int | None) -> Neighbours:
        return worst_documents(n_units, self.neighbours)


def _notes_on_public(plan: TopicPlan, *, counted: bool) -> tuple[str, ...]:
    """Refuse public topics that nothing could begin with; say so once the documents are counted."""
    if plan.n_refinements or plan.match_moments:
        return ()
    if counted:
        # The charge is made: what is left of the fit does without.
        return (
            "Public topics were not used: of so many documents, as they were counted, topics are "
            "not fitted to the moments, and no EM steps were asked for.",
        )
    raise ValueError(
        "public_components are what EM steps begin with, and this fit makes none; got "
        "n_refinements=0, or 'auto' with perturbation='moment_tensor'. Ask for some steps."
    )
