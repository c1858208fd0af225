"""Expected counts of words per topic, the sums of one EM step."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from sktensor_dp.data.counts import CountChunk
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.data.units import rows_of, scale_to, sum_over_rows
from sktensor_dp.queries import query
from sktensor_dp.queries.clips import CountNorm, norms_of_mean_counts
from sktensor_dp.queries.laws import GAUSSIAN, LAPLACE
from sktensor_dp.queries.mean_field import LEAST_PRIOR, MeanField, single_precision
from sktensor_dp.tensor.arrays import Floats, Singles, of_same_shape
from sktensor_dp.topics.inference import topic_posterior

# Larger priors have the same effect. Sums with counts stay far from overflow in single precision,
# where inf - inf is NaN.
LARGEST_PRIOR = 1e30
# Range of the divisors of counts: the quotients stay far from overflow.
SCALES = (1e-3, 1e3)
# Rows of topics sum to 1 up to rounding.
LARGEST_SHARE = 1 + 1e-6


@dataclass(frozen=True, eq=False)
class ExpectedCounts(query.NonNegative):
    """Sum over units of expected counts of each word in each topic, clipped to `limit`."""

    name, family = "expected_counts", "counts"
    description = "mean expected counts of every word in every topic, given the released topics"
    laws = (GAUSSIAN, LAPLACE)

    # A document's array has entries c_w p(topic | w, document) >= 0, which sum to its length, and
    # are then divided by `scales`. It depends on documents of its unit and on released values only.

    topics: Floats  # (k, n_words)
    prior: Floats  # (k,): Dirichlet parameters, or weights of single topics
    single: bool  # whether a document has one topic
    limit: float  # largest norm of a unit's contribution
    order: int = 2  # of that norm, 1 or 2
    n_iter: int = 10  # steps of mean field
    scales: Floats | None = None  # (n_words,): divisors of counts before the norm is taken

    def __post_init__(self) -> None:
        query.check_array("topics", self.topics, LARGEST_SHARE, least=0.0)
        query.check_array("the prior", self.prior, LARGEST_PRIOR, least=0.0)
        query.check_number("the limit", self.limit, query.LIMIT, infinite=True)
        if self.order not in (1, 2) or not self.n_iter >= 0:
            raise ValueError(
                f"order must be 1 or 2 and n_iter >= 0, got {self.order!r} and {self.n_iter!r}."
            )
        if self.scales is not None:
            query.check_array("the scales", self.scales, SCALES[1], least=SCALES[0])
            if self.order != 2 or self.scales.shape != self.topics.shape[1:]:
                raise ValueError(
                    "scales are one number for each word, for order 2; got order "
                    f"{self.order!r} and shape {self.scales.shape}."
                )

    def _largest_norms(self) -> query.Norms:
        return query.norms_within(self.limit, self.order)

    def total(self, chunk: CountChunk) -> Floats:
        """Clipped sum of expected counts, of shape (n_components, n_features)."""
        with np.errstate(all="ignore"):
            ratios, scaled = self._one_topic(chunk) if self.single else self._mixed(chunk)
            # `scaled` has double precision: sums over many documents in single precision would be
            # rounded by more than NORM_SLACK.
            result = sum_over_rows(len(scaled), lambda rows: rows_of(ratios, rows).T @ scaled[rows])
        return result.T if self.single else result.T * self.topics

    def by_document(self, chunk: CountChunk, words: Floats) -> Floats:
        """Products (n, k, r) of documents' clipped expected counts with `words` (r, n_features)."""
        ratios, scaled = self._one_topic(chunk) if self.single else self._mixed(chunk)
        if self.single:
            return np.asarray(scaled[:, :, None] * (ratios @ words.T)[:, None])
        directions = (self.topics[:, None] * words).reshape(-1, words.shape[1])
        products = (ratios @ directions.T).reshape(*scaled.shape, -1)
        found = np.empty_like(products)
        found[chunk.by_words[0]] = scaled[:, :, None] * products
        return found

    def _one_topic(self, chunk: CountChunk) -> tuple[sp.csr_matrix, Floats]:
        """Sparse counts, and clipped topic probabilities (n, k), under one topic per document."""
        posterior = topic_posterior(chunk.X, self.topics, self.prior)
        counts = self._scaled(chunk)
        norms = self._bounds(counts)
        # Where a bound exceeds the limit take the exact norm, which is computed for order 2 alone.
        if self.order == 2 and (norms > self.limit).any():
            row_norms = np.sqrt((posterior**2).sum(axis=1) * counts.squares)
            exact = norms_of_mean_counts(chunk.unit_words, counts.X.data, posterior, topics=None)
            exact = np.where(chunk.units.sizes == 1, chunk.units.means(row_norms), exact)
            norms = np.minimum(norms, NORM_SLACK * exact)
        return counts.X, posterior * chunk.units.row_weights(scale_to(norms, self.limit))[:, None]

    def _mixed(self, chunk: CountChunk) -> tuple[sp.csr_matrix, Floats]:
        """Sparse ratios, and clipped topic proportions (n, k), under LDA by mean field.

        Documents are in the order of ``chunk.by_words``.
        """
        units, norms = chunk.units, self._bounds(self._scaled(chunk))
        # Compute the exact norm, which is Euclidean, only where the cheap bound exceeds the limit;
        # `field` computes that of units of one document.
        too_long = (norms > self.limit) & (self.order == 2)
        needs_norm = (too_long & (units.sizes == 1))[units.of_rows]
        weights = None if self.scales is None else (1 / self.scales).astype(np.float32)
        topics, prior = single_precision(self.topics, self.prior)
        prior = self._priors(chunk, topics, prior)
        field = MeanField(chunk, topics, prior, self.n_iter, needs_norm, weights)
        expected, ratios = field.expected, field.ratios
        _drop_not_finite(expected, ratios)
        if too_long.any():
            words = chunk.sorted_unit_words
            exact = norms_of_mean_counts(words, ratios.data, expected, self.topics)
            row_norms = np.empty(len(expected))
            row_norms[field.order] = field.norms  # infinity where none was needed
            exact = np.where(units.sizes == 1, row_norms[units.starts[:-1]], exact)
            norms = np.minimum(norms, NORM_SLACK * exact)
        factors = units.row_weights(scale_to(norms, self.limit))
        return ratios, expected * factors[field.order, None]

    def _priors(self, chunk: CountChunk, topics: Singles, prior: Singles) -> Singles:
        """Prior (k, 1); or each document's, (k, n_documents), from all documents of its unit."""
        units, several = chunk.units, np.flatnonzero(chunk.units.sizes > 1)
        if not len(several):
            return prior

        def inferred(part: CountChunk) -> MeanField:
            no_norms = np.zeros(part.X.shape[0], dtype=bool)
            return MeanField(part, topics, prior, self.n_iter, no_norms)

        of_units = inferred(CountChunk(units.sums(chunk.X)[several]))
        of_documents = inferred(chunk)
        # If the evidence is that all documents of a unit share one mixture, it is their prior, with
        # a weight in proportion to their number. Else each has its own mixture, around that one.
        evidence_apart = np.bincount(units.of_rows, of_documents.evidence(), units.n)[several]
        shared = of_units.evidence() > evidence_apart
        weight = np.where(shared, units.sizes[several], 1).astype(np.float32) * prior.sum()
        priors = np.repeat(prior, units.n, axis=1)
        priors[:, several] = of_units.gamma / sum(of_units.gamma) * weight
        return np.maximum(priors, np.float32(LEAST_PRIOR))[:, units.of_rows]

    def _bounds(self, scaled: CountChunk) -> Floats:
        """Upper bound on the norm of each unit's expected counts: the norm of its counts."""
        if self.scales is None:
            return CountNorm(self.order).of(scaled)
        return NORM_SLACK * scaled.units.means(np.sqrt(scaled.squares))

    def _scaled(self, chunk: CountChunk) -> CountChunk:
        """Chunk with each word's counts divided by its `scales`, if there are any."""
        if self.scales is None:
            return chunk
        X = chunk.X
        return CountChunk(of_same_shape(X, X.data / self.scales[X.indices]), chunk.units)


def _drop_not_finite(expected: Singles, ratios: sp.csr_matrix) -> None:
    """Set all counts of a document to 0 if one is not finite: NaN would pass a clip."""
    dropped = np.asarray(~np.isfinite(expected).all(axis=1))
    if not np.isfinite(ratios.data).all():
        rows = np.repeat(np.arange(len(dropped)), np.diff(ratios.indptr))
        dropped[rows[~np.isfinite(ratios.data)]] = True
        ratios.data[dropped[rows]] = 0.0
    expected[dropped] = 0.0
