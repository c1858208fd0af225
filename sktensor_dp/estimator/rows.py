"""Base of estimators whose data are the rows of a table: documents, or samples."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from sktensor_dp.checks.frames import column_names, is_dask
from sktensor_dp.checks.parameters import check_sizes
from sktensor_dp.data.sources import PartitionedSource, check_chunks
from sktensor_dp.data.units import RowChunks
from sktensor_dp.estimator.base import PrivateEstimatorMixin, column_attributes
from sktensor_dp.estimator.data_norm import warn_of_longer_rows
from sktensor_dp.estimator.inputs import (
    CheckedChunks,
    advice_on_text,
    check_counted_alike,
    checked_groups,
    checked_table,
    names_of_words,
    refuse_private_number,
)
from sktensor_dp.estimator.lazy import (
    checked_columns,
    computed,
    number_of_units,
    partitions_by_group,
)
from sktensor_dp.estimator.scoring import warn_of_score
from sktensor_dp.privacy.payer import UNIT_MARK


class PrivateRowsMixin(PrivateEstimatorMixin):
    """Base of estimators of rows: fits to a table, in memory or lazy, and to chunks of one.

    A subclass names the class of its units in ``_chunk_class``, and fits them in ``_fit_units``.
    """

    _chunk_class: ClassVar[type[RowChunks[Any]]]
    score_samples: Any  # method that gives the score of each row

    def fit(
        self,
        X: ArrayLike | sp.spmatrix,
        y: object = None,
        *,
        groups: ArrayLike | None = None,
        n_samples: int | None = None,
        **unsupported: object,
    ) -> Self:
        """Learn from the rows of a table.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Documents as counts of words, or samples; NaN only where the class takes it. For a Dask
            array or data frame nothing is computed before the charge: see ``docs/scale.md``.
        y : ignored
        groups : array-like of shape (n_samples,), optional
            Label of the group, such as a person, that each row belongs to: integers or strings.
            The group is then protected, with all its rows, whose number is private. "Zoe" and
            "zoe" are two: :func:`~sktensor_dp.normalise_labels` makes them one.
            For a Dask `X`, a Dask array or series with its partitions.
        n_samples : int or None, default=None
            For a Dask `X` alone: the number of rows, where that is not known; with `groups` the
            number of groups. Public.
        **unsupported : object
            Refused: ``sample_weight`` would be read from the data.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        TypeError, ValueError
            If a parameter, an argument or `X` is wrong, or `groups` is not one label per row, or a
            single group with ``neighbours="replace_one"``; no budget is spent, unless only
            partitions of a Dask `X` show it.
        BudgetError
            If the accountant has too little left; no budget is spent.
        """
        checked = self._checked_copy(X, n_samples, unsupported)
        return self._fit_table(checked, X, groups, n_samples)

    def fit_chunks(
        self,
        source: Iterable[object],
        *,
        n_samples: int | None = None,
        n_features: int | None = None,
    ) -> Self:
        """Learn from chunks of rows that need not fit into memory together.

        Parameters
        ----------
        source : iterable of array-likes or sparse matrices, or of pairs
            Chunks of rows, or pairs ``(X, groups)`` of rows and labels as :meth:`fit` takes
            them; all rows of a group are in one chunk. Read once for validation, and once per
            release: a list or an object with ``__iter__``, not a generator.
        n_samples, n_features : int or None, default=None
            Rows, or groups, in all chunks together, and columns; public. With
            ``neighbours="add_remove"`` `n_samples` is private and must not be given.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        TypeError, ValueError, BudgetError
            As :meth:`fit`, or if `source` can be read only once, or its shape is not as
            announced. Budget is lost if chunks change once they have been validated.
        """
        self._check_parameters()
        chunks = self._chunks_of_source(source, n_samples, n_features)
        return self._fit_units(chunks, {"n_features_in_": n_features, **names_of_words(source)})

    def score(self, X: ArrayLike | sp.spmatrix, y: object = None) -> float:
        """Mean score of samples; higher is better, and not private.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, preferably none of those that were used in the fit.
        y : ignored

        Returns
        -------
        float
            Mean of :meth:`score_samples`.
        """
        warn_of_score(self)
        return float(computed(self.score_samples(X).mean(), "Scoring"))

    def _fit_table(self, checked: Self, X: Any, groups: Any, n_samples: int | None) -> Self:
        """Fit to the rows of a table; validation writes on `checked`, a copy of the estimator."""
        chunks = checked._chunks_of(X, groups, n_samples)
        return self._fit_units(chunks, column_attributes(checked))

    def _fit_units(self, chunks: Any, columns: Mapping[str, object]) -> Self:
        """Fit to units that may be read as often as needed: plan, open a session, ask, publish."""
        raise NotImplementedError  # in estimator.py of each family

    def _chunks_of(
        self, X: Any, groups: Any = None, n_samples: int | None = None, *, reset: bool = True
    ) -> Any:
        """Units of a table. Call it on a copy of the estimator: validation writes on that."""
        table = X
        if is_dask(X):
            X = checked_columns(self, X, reset=reset, text=advice_on_text(self))
            n_rows = math.nan if hasattr(X, "columns") else X.shape[0]
            n_units = number_of_units(self, n_rows, groups, n_samples, "rows")
            check_counted_alike(table, self.neighbours, n_units, grouped=groups is not None)
            return self._chunk_class(
                partitions_by_group(X, groups),
                n_units=n_units,
                n_features=int(X.shape[1]),
                prepared=partial(CheckedChunks, columns=column_names(X)),
            )
        X = self._validated_rows(X, reset=reset, fits=True, grouped=groups is not None)
        labels = checked_groups(groups, table, X.shape[0], self.neighbours)
        chunks = self._chunk_class(X, n_units=X.shape[0], n_features=X.shape[1], groups=labels)
        check_counted_alike(table, self.neighbours, chunks.n_units, grouped=groups is not None)
        return chunks

    def _chunks_of_source(self, source: Any, n_samples: int | None, n_features: Any) -> Any:
        """Units of a source of announced public sizes, which is read once for each release."""
        if not isinstance(source, PartitionedSource):
            check_chunks(source)
            if hasattr(source, UNIT_MARK):
                check_counted_alike(source, self.neighbours, n_samples, grouped=False)
        refuse_private_number(n_samples, self.neighbours)
        if not self._number_is_private:
            check_sizes(n_samples=n_samples)
        check_sizes(n_features=n_features)
        # An array would be taken for one validated table: wrap it, so that its items are chunks.
        whole = sp.issparse(source) or isinstance(source, np.ndarray)
        source = CheckedChunks(source) if whole else source
        return self._chunk_class(source, n_samples, n_features, prepared=CheckedChunks)

    def _forecast_verdict(
        self, n_units: int, n_features: int | None, **options: Any
    ) -> tuple[str, Sequence[str]] | None:
        """Verdict and assumptions of a forecast, or None if none can be made."""
        if n_features is None or not hasattr(self, "forecast"):
            return None
        if n_features == 0:  # the vocabulary of documents is expected to be empty
            length = options.get("document_length")
            if not length:
                return "too few", []
            assumed = f"Documents are assumed to have about {length} tokens each"
            return "too few", [f"{assumed} (document_length= says otherwise)."]
        forecast = self.forecast(n_units, n_features, **options)
        return forecast.verdict, forecast.assumptions

    def _validated_rows(
        self, X: object, *, reset: bool, fits: bool = False, grouped: bool = False
    ) -> Any:
        """Rows of a table as the numbers that chunks hold; warns of rows longer than the fit's."""
        X = checked_table(self, X, reset=reset, fits=fits, grouped=grouped)
        with suppress(MemoryError):
            rows = self._chunk_class.convert(X)
            if not fits and hasattr(self, "data_norm"):
                warn_of_longer_rows(self, self._chunk_class._chunk(rows))
            return rows
        # Not numpy's error, which names the number of rows.
        raise MemoryError("there is too little memory for X.")
