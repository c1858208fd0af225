"""One-hot columns of categories that are found privately."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.checks import frames
from sktensor_dp.checks.parameters import check_sizes
from sktensor_dp.estimator.facts import Neighbours
from sktensor_dp.model_files.fields import Words
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.text.plan import LENGTH, WordForecast, Wording, WordPlan, plan_words, worst_texts
from sktensor_dp.text.vectorizer import PrivateCountVectorizer, SavedVocabulary

# Stands between the name of a column and a category.
SEPARATOR = "="


@dataclass(kw_only=True)
class SavedCategories(SavedVocabulary):
    """Serialisation schema: a vocabulary, and the names of the columns that it describes."""

    columns_: Annotated[NDArray[np.object_], Words("c")]


class _RequestsOfTexts:
    """Names the argument that CountVectorizer takes out of what scikit-learn routes."""

    # It must be there to be taken out, and methods of the encoder call it X.
    __metadata_request__fit: ClassVar[dict[str, None]] = {"raw_documents": None}
    __metadata_request__transform: ClassVar[dict[str, None]] = {"raw_documents": None}


class PrivateOneHotEncoder(PrivateCountVectorizer, _RequestsOfTexts):
    r"""One-hot columns of categories that are found with differential privacy.

    scikit-learn's :class:`sklearn.preprocessing.OneHotEncoder` learns a column for every value
    that anyone has, so a rare one gives its owner away. Here a category of a column is kept if the
    noisy votes of rows for it clear a threshold that those of a single row practically never
    reach. Values that are not kept are encoded as zeros.

    Parameters
    ----------
    dtype : type, default=float
        Type of the encoded values.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        One row is replaced; or added or removed (``docs/guarantee.md``).
    epsilon : float, default=1.0
        Privacy parameter in (0, 1e12]. ``inf``: no noise, every category is kept, not private.
    delta : float, default=1e-6
        Privacy parameter, in (0, 1); half of it pays for the threshold.
    accountant : BudgetAccountant or None, default=None
        Accountant that is charged.
    random_state : int, RandomState or None, default=None
        Without effect: it never seeds noise, and nothing else is random here.
    verbose : int, default=0
        1 writes one line per release to standard error.

    Attributes
    ----------
    columns_ : ndarray of shape (n_columns,)
        Names of the columns, ``x0``, ``x1`` and so on where they have none.
    categories_ : list of ndarray
        Categories of each column in alphabetical order, as ``OneHotEncoder(categories=)`` takes
        them; a column may have none.
    vocabulary_ : dict
        Encoded column of each category, by the name ``column=category``.
    threshold_ : float
        Public number of rows (or groups), about, from which a category is kept; of groups, if
        these have one category of each column: double if four times as many. Of several columns,
        up to 1.7 times as many where all categories are about as common.
    privacy_report_ : PrivacyReport
        What was released and what it cost.

    Notes
    -----
    **Privacy.** *Unit*: one row; with ``groups``, one group with all its rows. *Public*: the number
    of units, unless it is released, the names and the number of columns, and all parameters.
    *Releases*: those of :class:`PrivateCountVectorizer`, a row being a document of one word for
    each column; of a single column without `groups` the votes alone, at the whole budget. *Not
    covered*: what :meth:`transform` and :meth:`fit_transform` return is raw data.

    Examples
    --------
    >>> from sktensor_dp import PrivateOneHotEncoder
    >>> cities = [["Oslo"], ["Rome"]] * 500 + [["Nowhere"]]
    >>> encoder = PrivateOneHotEncoder(epsilon=1.0).fit(cities)
    >>> encoder.categories_
    [array(['Oslo', 'Rome'], dtype=object)]
    >>> encoder.transform([["Rome"], ["Nowhere"]]).toarray()
    array([[0., 1.],
           [0., 0.]])
    """

    _saved = SavedCategories  # type: ignore[assignment]
    _unit, _noun = "sample", "rows"
    _wording = Wording(
        "category", "the columns hold categories", "Fewer columns", "public categories"
    )
    columns_: NDArray[np.object_]

    def __init__(
        self,
        *,
        dtype: DTypeLike = np.float64,
        neighbours: str = "replace_one",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            analyzer=list, binary=True, dtype=dtype, neighbours=neighbours, epsilon=epsilon,
            delta=delta, accountant=accountant, random_state=random_state, verbose=verbose,
        )  # fmt: skip

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, *, groups: ArrayLike | None = None, **unsupported: Any
    ) -> Self:
        """Choose the categories of each column.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_columns)
            Categories as strings; a missing value counts for none. Or a dict of arrays by name.
        y : ignored
        groups : array-like of shape (n_samples,), optional
            Label of the group of each row: integers or strings. The group is then what is
            protected, with all its rows.
        **unsupported : object
            Refused: ``sample_weight`` would be read from the data.

        Returns
        -------
        self : PrivateOneHotEncoder

        Raises
        ------
        TypeError, ValueError
            If a parameter or argument is wrong; no budget is spent.
        NotEnoughDataError
            If the threshold exceeds the number of rows, before anything is charged; or if no
            category is released.
        BudgetError
            If the accountant has too little left; no budget is spent.
        """
        return super().fit(X, groups=groups, **unsupported)

    def fit_transform(  # type: ignore[override]
        self, X: Any, y: Any = None, *, groups: ArrayLike | None = None, **unsupported: Any
    ) -> Any:
        """Choose the categories and encode the same rows.

        Parameters
        ----------
        X, y, groups, **unsupported : object
            As for :meth:`fit`.

        Returns
        -------
        sparse matrix of shape (n_samples, n_features)
            Raw data, not protected by the fit.
        """
        return super().fit_transform(X, groups=groups, **unsupported)

    def transform(self, X: object) -> Any:
        """Encode rows: 1 in the column of each category that was kept. The result is raw data."""
        check_is_fitted(self, "vocabulary_")
        names, rows = rows_of(X)
        if names != list(self.columns_):
            raise ValueError(f"X must have the columns {list(self.columns_)}, got {names}.")
        return super().transform(rows)

    def forecast(  # type: ignore[override]  # a row has a value in each column
        self, n_samples: int, n_columns: int = 1, *, grouped: bool = False
    ) -> WordForecast:
        """Forecast, from public numbers, in about how many rows a category must be to be kept.

        Parameters
        ----------
        n_samples, n_columns : int
            Rows (or groups) and columns to come.
        grouped : bool, default=False
            Whether they will be fitted with groups.

        Returns
        -------
        WordForecast
            Its threshold is ``threshold_`` of the fit. Costs nothing.

        Examples
        --------
        >>> print(PrivateOneHotEncoder(epsilon=1.0).forecast(10_000))
        10,000 rows: a category is kept from about 31 rows on.
        """
        self._check_parameters()
        check_sizes(n_samples=n_samples, n_columns=n_columns)
        plan = self._planned(n_samples, n_columns, grouped=grouped)
        return WordForecast(n_samples, plan.threshold, n_words=None, document_length=plan.length)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the encoded columns, ``column=category``."""
        return super().get_feature_names_out(input_features)

    @property
    def categories_(self) -> list[NDArray[np.object_]]:
        """Categories of each column."""
        found: dict[str, list[str]] = {column: [] for column in self.columns_}
        for word in sorted(self.vocabulary_):
            column, category = word.split(SEPARATOR, 1)
            found[column].append(category)
        return [np.array(categories, object) for categories in found.values()]

    def _worst_case(self, n_units: int | None) -> Neighbours:
        # Arguments of two fits, each with texts alone, and the statistic, which differs here.
        (texts,), (others,), _ = worst_texts(1, n_units, self.neighbours)
        return ([[x] for x in texts],), ([[x] for x in others],), _second_category

    def _chunks_of(self, X: object, groups: object, n_samples: object) -> Any:
        names, rows = rows_of(X)
        frames.refuse_other_row_order(X, groups)
        chunks: Any = super()._chunks_of(rows, groups, n_samples)
        chunks.columns = names
        return chunks

    def _attributes_of(self, chunks: Any) -> dict[str, Any]:
        return {"columns_": np.array(chunks.columns, object)}

    def _plan(self, chunks: Any, n_units: int) -> WordPlan:
        return self._planned(n_units, len(chunks.columns), grouped=chunks.grouped)

    def _planned(self, n_units: int, width: int, *, grouped: bool) -> WordPlan:
        """Plan for rows of `width` columns, or for persons with any number of such rows."""
        # A row has one category for each column. A group may have any number; an ordinary one is
        # assumed to have as many as a row.
        planner, noun, most = self._validation_copy(), self._noun, width
        if grouped:
            noun, most = "persons", max(width, planner.max_words_per_document)
        planner.max_words_per_document = most
        one_each = width == 1 and not grouped
        return plan_words(planner, n_units, noun, length=min(width, LENGTH), one_each=one_each)


def _second_category(fitted: PrivateOneHotEncoder) -> float:
    """1 if only the second category of a worst case was kept, -1 if only the first was."""
    kept = {str(category)[0] for category in fitted.categories_[0]}
    return float("b" in kept) - float("a" in kept)


def rows_of(X: object) -> tuple[list[str], list[list[str]]]:
    """Names of columns, and each row as a list of ``column=category``; errors quote no cell."""
    frames.refuse_lazy(X, "X")
    if frames.is_dask(X) or sp.issparse(X):
        raise TypeError(f"X must be a table of categories in memory, got a {type(X).__name__}.")
    if isinstance(X, Mapping):
        named = [(name, np.asarray(column, dtype=object)) for name, column in X.items()]
    elif frames.is_table(X):
        named = frames.named_columns(X, "X")
    else:
        table = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
        if table.ndim != 2:
            raise ValueError("X must have two dimensions: a row of categories for each sample.")
        named = [(f"x{place}", column) for place, column in enumerate(table.T)]
    names = [name for name, _ in named]
    if len(set(names)) < len(names) or any(SEPARATOR in name for name in names):
        raise ValueError(f"Names of columns must differ, and have no {SEPARATOR!r}; got {names}.")

    def word(name: str, value: object) -> str:
        if isinstance(value, str):
            return f"{name}{SEPARATOR}{value}"
        # NAType is that of pandas, which need not be installed.
        is_nan = isinstance(value, float) and math.isnan(value)
        if value is None or is_nan or type(value).__name__ == "NAType":
            return ""  # a missing value has no word
        raise TypeError(
            f"Column {name!r} of X must hold categories as strings, got a "
            f"{type(value).__name__}. Convert it with astype(str)."
        )

    columns = [[word(name, value) for value in values.tolist()] for name, values in named]
    return names, [list(filter(None, row)) for row in zip(*columns, strict=True)]
