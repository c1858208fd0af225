"""The boundary: every step at which raw data becomes public, and nothing else.

Each entry names the query, the laws of noise it may be released with, and the page that proves its
bound. The curator refuses anything that is not listed here.
"""

from dataclasses import dataclass, replace
from typing import Literal

from sktensor_dp.privacy import mechanisms
from sktensor_dp.privacy.mechanisms import Mechanism, piecewise_deviation, piecewise_values
from sktensor_dp.privacy.selection import PartitionSelection
from sktensor_dp.queries.counts import NormHistogram, WordFrequencies
from sktensor_dp.queries.entries import Entries, EntryPairs, RowSums, ValueHistogram
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.gradients import EntryGradients, RidgeBlock
from sktensor_dp.queries.moments import PairMoments, TripleMoments, WhitenedTripleMoments
from sktensor_dp.queries.query import UnitCount
from sktensor_dp.queries.samples import (
    PowerIterations,
    ProjectedThirdMoments,
    SecondMoments,
    TensorPowerIterations,
    ThirdMomentHistogram,
    ThirdMoments,
)
from sktensor_dp.queries.scores import HeldOutScores
from sktensor_dp.queries.slices import SharedFactorSums, SharedRowSums, UnitLevels
from sktensor_dp.queries.text import DocumentFrequencies, WordBuckets, WordVotes

IN_DOUBLES = (
    "Spherical Laplace noise is drawn in double precision: epsilon and delta are those of its "
    "law. By an estimate, which is no proof, the program adds about 1e-16 to delta for every "
    "release, and to epsilon a share of 1e-7 in tens of dimensions and of up to a hundredth "
    "in the space of all triples of thousands of words: see "
    "docs/proofs/gaussian_noise_on_a_grid.md."
)
GAUSSIAN = Mechanism("gaussian", "l2", mechanisms.gaussian_vector)
LAPLACE = Mechanism("laplace", "l1", mechanisms.laplace_vector, pure=True)
SYMMETRIC = Mechanism("gaussian, symmetric", "l2", mechanisms.gaussian_symmetric)
MATRIX = Mechanism("gaussian, symmetric", "l2", mechanisms.gaussian_matrix)
SPHERICAL = Mechanism(
    "spherical laplace", "l2", mechanisms.spherical_laplace_symmetric, True, residual=IN_DOUBLES
)
SPHERICAL_VECTOR = replace(SPHERICAL, law=mechanisms.spherical_laplace_vector)
# Only for statistics of which neighbours differ in one row, and in one number.
SPHERICAL_ROWS = replace(
    SPHERICAL, name="spherical laplace, by rows", law=mechanisms.spherical_laplace_rows
)
PIECEWISE = Mechanism(
    "piecewise", "l1", piecewise_values, pure=True, unit_deviation=piecewise_deviation
)
# A query that is seen in a subspace says of which space, and in which geometry.
WEIGHTED = ("diagonal_weight",)
PAIRS = replace(SYMMETRIC, law=mechanisms.gaussian_pair_masses, of_query=WEIGHTED)
LAPLACE_PAIRS = Mechanism(
    "laplace, symmetric", "l1", mechanisms.laplace_pair_masses, True, of_query=WEIGHTED
)
SPHERICAL_TRIPLES = replace(SPHERICAL, of_query=("ambient_dimension",))
SPHERICAL_PROJECTION = replace(SPHERICAL_VECTOR, of_query=("ambient_dimension",))


Family = Literal["units", "texts", "counts", "samples", "tensors", "entries", "slices", "scores"]


@dataclass(frozen=True)
class Release:
    """Entry of the catalogue: a query, and the laws of noise of its answer."""

    name: str  # as used in plans and reports
    family: Family  # kind of raw data that the query reads; units are texts, counts or samples
    description: str  # the statistic in words; a mean over units, or under PartitionSelection a sum
    query: type  # type of the query, whose sensitivities are proved on the page
    gaussian: Mechanism | PartitionSelection  # law of the noise for a cost in mu
    pure: Mechanism | None  # law for a cost in pure epsilon; ``None`` where there is none

    @property
    def proof(self) -> str:
        """Page under ``docs/proofs`` that proves the query's sensitivity."""
        return f"{self.name}.md"


# fmt: off
_RELEASES = (
    Release("unit_count", "units",
            "number of units, where one more or less is hidden: all else is divided by it",
            UnitCount, GAUSSIAN, LAPLACE),
    Release("document_frequencies", "texts",
            "words that enough documents contain, each with the number of those documents",
            DocumentFrequencies, PartitionSelection("gaussian, thresholded"), None),
    Release("word_buckets", "texts",
            "share of documents in each bucket of words: of a checksum of any, or of known ones",
            WordBuckets, GAUSSIAN, LAPLACE),
    Release("word_votes", "texts",
            "words for which enough documents vote, each with its votes",
            WordVotes, PartitionSelection("gaussian, thresholded"), None),
    Release("norm_histogram", "counts",
            "share of units in each bin of a norm, from which a clip is chosen",
            NormHistogram, GAUSSIAN, LAPLACE),
    Release("word_frequencies", "counts",
            "weighted mean counts of every word",
            WordFrequencies, GAUSSIAN, LAPLACE),
    Release("pair_moments", "counts",
            "weighted mean second moment of counts",
            PairMoments, PAIRS, LAPLACE_PAIRS),
    Release("whitened_triple_moments", "counts",
            "weighted mean third moment of counts in the released whitened space",
            WhitenedTripleMoments, SYMMETRIC, SPHERICAL),
    Release("triple_moments", "counts",
            "weighted mean third moment of counts, noised in word space, seen in a subspace",
            TripleMoments, SYMMETRIC, SPHERICAL_TRIPLES),
    Release("expected_counts", "counts",
            "mean expected counts of every word in every topic, given the released topics",
            ExpectedCounts, GAUSSIAN, LAPLACE),
    Release("second_moments", "samples",
            "mean second moment of samples clipped to a ball",
            SecondMoments, MATRIX, SPHERICAL),
    Release("third_moment_histogram", "samples",
            "share of samples in each bin of the norm of their projected third moment",
            ThirdMomentHistogram, GAUSSIAN, LAPLACE),
    Release("projected_third_moments", "samples",
            "mean third moment of samples in a released subspace, clipped there",
            ProjectedThirdMoments, GAUSSIAN, SPHERICAL_VECTOR),
    Release("third_moments", "samples",
            "mean third moment of samples, noised in the whole space, seen in a subspace",
            ThirdMoments, GAUSSIAN, SPHERICAL_PROJECTION),
    Release("power_iterations", "samples",
            "one step of the power method on the third moment of samples, from all starts",
            PowerIterations, GAUSSIAN, SPHERICAL_VECTOR),
    Release("tensor_power_iterations", "tensors",
            "one step of the power method on a private tensor, from all starts",
            TensorPowerIterations, GAUSSIAN, SPHERICAL_VECTOR),
    Release("entries", "entries",
            "the value of every entry",
            Entries, GAUSSIAN, PIECEWISE),
    Release("row_sums", "entries",
            "weighted sums of the values in each row of each mode",
            RowSums, GAUSSIAN, LAPLACE),
    Release("entry_gradients", "entries",
            "gradient of the squared error in all parameters of the model",
            EntryGradients, GAUSSIAN, LAPLACE),
    Release("ridge_block", "entries",
            "rows of one factor by ridge regression",
            RidgeBlock, GAUSSIAN, SPHERICAL_ROWS),
    Release("entry_pairs", "entries",
            "sums over rows of products of their clipped residuals in two columns",
            EntryPairs, GAUSSIAN, LAPLACE),
    Release("value_histogram", "slices",
            "mean over units of the share of values in each bin, from which a range is chosen",
            ValueHistogram, GAUSSIAN, LAPLACE),
    Release("unit_levels", "slices",
            "mean over units of their level, and of their deviation from it",
            UnitLevels, GAUSSIAN, LAPLACE),
    Release("shared_row_sums", "slices",
            "sums over units of their clipped residuals in each row of a shared mode",
            SharedRowSums, GAUSSIAN, LAPLACE),
    Release("shared_factor_sums", "slices",
            "sums over units of residuals times their own weights of components",
            SharedFactorSums, GAUSSIAN, None),
    Release("held_out_scores", "scores",
            "mean score of a released model over held-out units, clipped to public bounds",
            HeldOutScores, GAUSSIAN, LAPLACE),
)
# fmt: on
CATALOGUE: dict[str, Release] = {entry.name: entry for entry in _RELEASES}
for _entry in _RELEASES:
    _entry.query.release_name = _entry.name  # type: ignore[attr-defined]
