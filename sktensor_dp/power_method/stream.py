"""Streams of disjoint batches, each read once."""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from sktensor_dp.estimator.base import Fitted, PlannedFit, columns_of
from sktensor_dp.estimator.input_errors import check_source
from sktensor_dp.estimator.input_kinds import Numeric
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.power_method.learning import (
    PERTURBATIONS,
    STREAM_PROGRESS,
    PowerLearningMixin,
    attributes_of,
    found_by,
)
from sktensor_dp.power_method.plan import check_moments_fit
from sktensor_dp.power_method.recipe import FittedComponents
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.curators.samples import SampleCurator
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.statistics.counts import CountChunks
from sktensor_dp.statistics.reading import read_each
from sktensor_dp.statistics.samples import SampleChunks
from sktensor_dp.tensor.online import OnlinePowerMethod

__all__ = ["PowerStreamMixin", "StreamState"]


@dataclass(frozen=True, eq=False)
class StreamState:
    """Released quantities carried from batch to batch; nothing of the batches themselves.

    Attributes
    ----------
    method : OnlinePowerMethod
        Components and starts so far.
    sigma : float
        Noise of the last answer.
    budget : tuple
        Epsilon, delta and data_norm of every batch.
    accountant : BudgetAccountant or None
        Who was charged for the first batch, and so for all.
    """

    method: OnlinePowerMethod
    sigma: float
    budget: tuple[float, float, float]
    accountant: BudgetAccountant | None

    @property
    def found(self) -> FittedComponents:
        """Components so far."""
        return found_by(self.method, self.sigma)

    @property
    def progress(self) -> dict[str, Any]:
        """Fitted state that only streams have."""
        method = self.method
        progress = (method.n_answers, method.n_answers_needed, method.is_complete)
        return {"_stream": self, **dict(zip(STREAM_PROGRESS, progress, strict=True))}


def _reads_batches(estimator: Any) -> bool:
    if estimator.moment == "raw" and estimator.perturbation in ("auto", "stream"):
        return True
    raise AttributeError(
        "partial_fit needs moment='raw' and perturbation 'auto' or 'stream'; got "
        f"{estimator.moment!r} and {estimator.perturbation!r}."
    )


class PowerStreamMixin(PowerLearningMixin):
    """Fitting of chunks and batches."""

    _stream: StreamState

    def fit_chunks(
        self,
        source: Iterable[Any],
        *,
        n_samples: int | None = None,
        n_features: int | None = None,
    ) -> Self:
        """Learn components from chunks that need not fit into memory together.

        Parameters
        ----------
        source : iterable of array-likes or sparse matrices
            Chunks of rows. For ``"stream"`` each chunk is a batch and is read once, so
            a generator will do. Otherwise the source is iterated over once to see that
            chunks are what was announced, and once per release: a list or an object with
            ``__iter__``.
        n_samples, n_features : int or None, default=None
            Rows in all chunks together, and columns; public. Not needed for
            ``"stream"``, which ``"auto"`` is where they are not given.

        Returns
        -------
        self : PrivateTensorPowerMethod
            The fitted model.

        Raises
        ------
        TypeError
            If `source` has to be read several times and can be read once.
        ValueError
            If a parameter is wrong, a chunk is not a matrix of finite numbers or the shape
            is not as announced; no budget is spent. A stream is charged for once its first
            batch has been validated: a later one is refused when it is read.
        BudgetError
            If the accountant has too little left.
        """
        self._check_combination(PERTURBATIONS, "fit_chunks")
        streams = self.perturbation == "stream" or (
            self.perturbation == "auto" and n_samples is None and self.moment == "raw"
        )
        if streams:
            witness = self._witness()
            batches = (witness._validated(X, reset=place == 0) for place, X in enumerate(source))
            return self._fit_stream(batches, witness)
        check_source(source, n_samples, n_features)
        assert n_samples is not None
        assert n_features is not None
        wrapper = CountChunks if self.moment == "single_topic" else SampleChunks
        chunks = wrapper(Numeric(source), n_samples, n_features)
        return self._live(self._planned_fit(chunks, {"n_features_in_": n_features}))

    @available_if(_reads_batches)
    def partial_fit(self, X: ArrayLike | sp.spmatrix, y: Any = None) -> Self:
        """Make one power step on one more batch of samples that no other batch contains.

        ``n_batches_needed_`` batches find all components; later ones polish them. As
        batches are disjoint, the whole stream is as private as one batch (parallel
        composition), and an accountant is charged once. Memory beside the batch is
        linear in the number of features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples in no particular order: every batch stands for all. The caller
            answers for batches being disjoint.
        y : None
            Ignored.

        Returns
        -------
        self : PrivateTensorPowerMethod
            The model after this batch.

        Raises
        ------
        AttributeError
            If the moment is not ``"raw"``, or the perturbation reads all data at once.
        ValueError
            As :meth:`fit`, or if epsilon, delta or data_norm changed since the first
            batch, which is what an accountant was charged for.
        """
        self._check_combination(("auto", "stream"), "partial_fit")
        stream = getattr(self, "_stream", None)
        now = (self.epsilon, self.delta, self.data_norm)
        if stream is not None and stream.budget != now:
            raise ValueError(
                f"epsilon, delta and data_norm must be those of the first batch, "
                f"{stream.budget}, which were charged; got {now}. fit() starts a new stream."
            )
        if stream is None:
            witness = self._witness()
            X = witness._validated(X, reset=True)
            return self._live(self._planned_batch(X, None, columns_of(witness)))
        X = self._validated(X, reset=False)
        return self._live(self._planned_batch(X, stream, columns_of(self), self.privacy_report_))

    def _planned_batch(
        self,
        X: Any,
        stream: StreamState | None,
        columns: Mapping[str, Any],
        earlier: PrivacyReport | None = None,
    ) -> PlannedFit[SampleCurator]:
        """Plan one step on a batch that no other step reads, at the full budget."""
        chunks = SampleChunks(X, *X.shape)
        plan = self._plan(chunks.n_units, chunks.n_features, "stream")
        check_moments_fit(plan, chunks.n_features)
        budget, payer = (self.epsilon, self.delta, self._radius()), self._payer()

        def recipe(curator: SampleCurator) -> Fitted:
            if stream is None:
                random_state = check_random_state(self.random_state)
                method = self._method(plan, chunks.n_features, random_state)
            else:
                # Another one: a step that fails must not have moved the stream.
                method = copy.deepcopy(stream.method)
            answers = curator.power_iterations(method.ask())
            method.tell(answers.value)
            after = StreamState(method, answers.sigma, budget, payer)
            return Fitted(
                {**attributes_of(after.found), **after.progress, "n_iter_": plan.max_iter}
            )

        # Another accountant keeps another ledger, which knows nothing of the first batch.
        charge = stream is None or payer is not stream.accountant
        return PlannedFit(
            SampleCurator, chunks, plan.releases, recipe, columns,
            {"radius": self._radius(), "charge": charge},
            self._cautions_of_cap(chunks.n_features) if stream is None else (),
            earlier=earlier,
        )  # fmt: skip

    def _fit_stream(self, batches: Iterable[Any], witness: Any) -> Self:
        """One step on each of some validated batches; published once all are read."""
        fitted: Mapping[str, Any] = {}
        for X in read_each(batches, "The source of chunks"):
            planned = self._planned_batch(
                X, fitted.get("_stream"), columns_of(witness), fitted.get("privacy_report_")
            )
            fitted = self._paid(planned).attributes
        if not fitted:
            raise ValueError("the source of chunks yielded none.")
        return self._end(Fitted(fitted, self._cautions_of_stream(fitted["_stream"])))

    def _batches(self, X: Any) -> Iterator[Any]:
        """Split rows at random into batches of equal size, some left to polish."""
        n_samples, n_features = X.shape
        plan = self._plan(n_samples, n_features, "stream")
        n_batches = (plan.n_components + 1) * (plan.max_iter + 1)
        order = check_random_state(self.random_state).permutation(n_samples)
        for rows in np.array_split(order, min(n_batches, len(order))):
            yield X[rows]

    def _cautions_of_stream(self, stream: StreamState) -> tuple[Warning, ...]:
        """What a whole stream has not shown."""
        if stream.method.is_complete:
            return self._cautions_of_noise(stream.found)
        return (
            NotEnoughDataWarning(
                f"The stream ended after {stream.method.n_answers} batches; "
                f"{stream.method.n_answers_needed} are needed for all components."
            ),
        )
