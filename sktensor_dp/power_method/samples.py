"""Fits of samples: of all at once, or of batch after batch."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import scipy.sparse as sp
from numpy.typing import ArrayLike

from sktensor_dp.estimator.base import Fitted, columns_of
from sktensor_dp.estimator.inputs import Numeric, checked_grouping, row_choice
from sktensor_dp.estimator.lazy_tables import lazy_table
from sktensor_dp.power_method.inputs import NOT_AT_RANDOM, random_batches
from sktensor_dp.power_method.parameters import PERTURBATIONS
from sktensor_dp.power_method.plan import ComponentPlans
from sktensor_dp.power_method.stream import cautions_of_stream
from sktensor_dp.privacy.noise import OneProcess
from sktensor_dp.queries.counts import CountChunks
from sktensor_dp.queries.reading import read_each
from sktensor_dp.queries.samples import SampleChunks


class SampleFits(ComponentPlans):
    """Fits of rows, which are the units of privacy, or rows of theirs."""

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
        kind, widest = self._kind, self._widest
        X = witness._validated(X, reset=True, fits=True, grouped=groups is not None)
        grouping = {} if groups is None else checked_grouping(groups, X.shape[0], self)
        if X.shape[1] > widest:
            n_batches, coins = self._n_batches(X.shape[1]), self._number_is_private
            batches = random_batches(X, n_batches, self.random_state, by_coins=coins, **grouping)
            return self._fit_stream(batches, witness)
        chunks = kind(X, *X.shape, **grouping)
        return self._live_on(chunks, partial(self._fit_of, chunks, columns_of(witness)))

    def _parts(self, X: Any, n_samples: int | None, n_features: int) -> CountChunks | SampleChunks:
        """What is read part by part, with labels or without."""
        choice = row_choice(self.max_rows_per_group)
        return self._kind(X, n_samples, n_features, choice=choice, prepared=Numeric)

    def _lazy_chunks(
        self, witness: Any, X: Any, groups: Any, n_samples: Any, *, reset: bool, batch: bool = False
    ) -> Any:
        """Rows that Dask has not computed yet."""
        table = lazy_table(witness, X, groups, n_samples, reset=reset)
        if not batch and table.n_features > self._widest:
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
        process = OneProcess()
        for chunks in read_each(batches, "The source of chunks"):
            process.check()
            planned = self._planned_batch(
                chunks, fitted.get("_stream"), columns_of(witness), fitted.get("privacy_report_"),
                n_batches,
            )  # fmt: skip
            # The first one pays for all, and nothing has copied the stream on the way.
            planned = replace(planned, options={**planned.options, "charge": not fitted})
            fitted = self._paid(planned).attributes
        if not fitted:
            raise ValueError("the source of chunks yielded none.")
        cautions = cautions_of_stream(fitted["_stream"], self.n_components)
        return self._end(Fitted(fitted, cautions))
