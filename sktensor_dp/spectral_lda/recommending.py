"""Features that documents lack and that their topics make likely: items to recommend."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.estimator.parameters import check_sizes
from sktensor_dp.tensor.arrays import Floats, TopRows, top_rows_by_parts

# Probabilities that are ranked at a time.
BLOCK = 2**22


class RecommendingTopics:
    """What a fitted topic model recommends to the rows of a table of its caller's."""

    components_: Floats
    n_features_in_: int

    def recommend(
        self,
        X: ArrayLike | sp.spmatrix,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        feature_names: Sequence[str] | NDArray[Any] | None = None,
    ) -> TopRows:
        """Features that are most probable in each row, best first.

        For clicks, views and purchases, which nobody rates: a row is a person, a column an
        item, an entry how often. A topic is a distribution over items; a person mixes topics,
        and :meth:`transform` finds in which shares.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts of the caller's own rows, of the fit or new ones; nothing of them is kept.
        n : int, default=10
            How many.
        exclude_seen : bool, default=True
            Whether to leave out features that the row has.
        feature_names : array-like of shape (n_features,), optional
            Names to give in the place of numbers.

        Returns
        -------
        TopRows
            ``rows``, the numbers or names of features, and ``values``, their probabilities in
            the row: each of shape (n_samples, n). Equal ones by number. -1 (or None) and NaN
            fill up what is missing where a row has nearly all features.

        Raises
        ------
        ValueError
            If `n` is no int >= 1, or names are not as many as features.

        Notes
        -----
        **Privacy.** It costs nothing: topics were released, and a row's shares of them are
        computed from the row itself, by whoever holds it. What is recommended to a person is
        as private as that person's clicks.

        Examples
        --------
        >>> import numpy as np
        >>> from sktensor_dp import PrivateSpectralLDA
        >>> rng = np.random.default_rng(0)
        >>> likes = np.repeat([[5, 5, 5, 1, 1, 1], [1, 1, 1, 5, 5, 5]], 2000, axis=0)
        >>> X = rng.poisson(likes)
        >>> model = PrivateSpectralLDA(2, epsilon=5.0, random_state=0).fit(X)
        >>> model.recommend([[4, 3, 0, 0, 0, 0]], n=1, feature_names=list("abcdef")).rows.tolist()
        [['c']]
        """
        check_is_fitted(self)
        check_sizes(n=n)
        names = None if feature_names is None else np.asarray(feature_names, dtype=object)
        if names is not None and names.shape != (self.n_features_in_,):
            raise ValueError(
                f"feature_names must have one name for each of the {self.n_features_in_} "
                f"features; got shape {names.shape}."
            )
        shares = self.transform(X)  # type: ignore[attr-defined]
        seen = sp.csr_matrix(X) if exclude_seen else None
        rows, values = top_rows_by_parts(
            len(shares), self.n_features_in_, int(n),
            lambda part: shares[part] @ self.components_,
            lambda part: None if seen is None else seen[part].toarray() > 0,
            block=BLOCK,
        )  # fmt: skip
        if names is not None:
            # -1 is the last one.
            rows = np.array([*names, None], dtype=object)[rows]
        return TopRows(rows, values)
