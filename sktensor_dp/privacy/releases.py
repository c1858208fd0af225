"""The boundary: every step at which raw data becomes public, and nothing else.

Each entry names the query that computes the statistic and bounds what one unit
can change, the laws of noise it may be released with, and the page that proves
the bound. Estimators ask the curator for entries by name; the curator refuses
anything that is not listed here.
"""

from dataclasses import dataclass
from typing import Any

from sktensor_dp.privacy import mechanisms
from sktensor_dp.privacy.mechanisms import Floats, Mechanism
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.partition_selection import PartitionSelection
from sktensor_dp.privacy.piecewise import piecewise_deviation, piecewise_values
from sktensor_dp.statistics.entry_queries import (
    Entries,
    EntryGradients,
    FactorSums,
    RidgeBlock,
    RowSums,
)
from sktensor_dp.statistics.expected_counts import ExpectedCounts
from sktensor_dp.statistics.moments import (
    NormHistogram,
    PairMoments,
    TripleMoments,
    WhitenedTripleMoments,
    WordFrequencies,
)
from sktensor_dp.statistics.power_iterations import PowerIterations, TensorPowerIterations
from sktensor_dp.statistics.sample_moments import (
    ProjectedThirdMoments,
    SecondMoments,
    ThirdMomentHistogram,
    ThirdMoments,
)
from sktensor_dp.statistics.scores import HeldOutScores
from sktensor_dp.statistics.slice_queries import SharedFactorSums, SharedRowSums, UnitLevels
from sktensor_dp.statistics.text import DocumentFrequencies
from sktensor_dp.tensor.symmetric import n_unique

__all__ = ["CATALOGUE", "Release"]


def _vector(x: Floats, s: float, mu: float, noise: NoiseSource, _: Any) -> Floats:
    return mechanisms.gaussian_vector(x, s, mu, noise)


def _laplace(x: Floats, s: float, epsilon: float, noise: NoiseSource, _: Any) -> Floats:
    return mechanisms.laplace_vector(x, s, epsilon, noise)


def _pairs(x: Floats, s: float, mu: float, noise: NoiseSource, query: PairMoments) -> Floats:
    return mechanisms.gaussian_pair_masses(x, s, mu, noise, query.diagonal_weight)


def _laplace_pairs(
    x: Floats, s: float, epsilon: float, noise: NoiseSource, query: PairMoments
) -> Floats:
    return mechanisms.laplace_pair_masses(x, s, epsilon, noise, query.diagonal_weight)


def _symmetric(x: Floats, s: float, mu: float, noise: NoiseSource, _: Any) -> Floats:
    return mechanisms.gaussian_symmetric(x, s, mu, noise)


def _spherical(x: Floats, s: float, epsilon: float, noise: NoiseSource, _: Any) -> Floats:
    return mechanisms.spherical_laplace_symmetric(x, s, epsilon, noise)


def _triples(x: Floats, s: float, mu: float, noise: NoiseSource, query: TripleMoments) -> Floats:
    if query.histogram:
        return mechanisms.gaussian_triple_histogram(x, query.basis, s, mu, noise)
    return mechanisms.gaussian_symmetric(x, s, mu, noise)


def _spherical_triples(
    x: Floats, s: float, epsilon: float, noise: NoiseSource, query: TripleMoments
) -> Floats:
    ambient = n_unique(query.basis.shape[0], 3)
    return mechanisms.spherical_laplace_symmetric(x, s, epsilon, noise, ambient)


def _spherical_vector(x: Floats, s: float, epsilon: float, noise: NoiseSource, _: Any) -> Floats:
    return mechanisms.spherical_laplace_vector(x, s, epsilon, noise)


def _spherical_projection(
    x: Floats, s: float, epsilon: float, noise: NoiseSource, query: ThirdMoments
) -> Floats:
    return mechanisms.spherical_laplace_vector(x, s, epsilon, noise, query.ambient_dimension)


def _spherical_rows(x: Floats, s: float, epsilon: float, noise: NoiseSource, _: Any) -> Floats:
    return mechanisms.spherical_laplace_rows(x, s, epsilon, noise)


def _piecewise(x: Floats, s: float, epsilon: float, noise: NoiseSource, _: Any) -> Floats:
    return piecewise_values(x, s, epsilon, noise)


GAUSSIAN = Mechanism("gaussian", "l2", _vector)
LAPLACE = Mechanism("laplace", "l1", _laplace, pure=True)
SYMMETRIC = Mechanism("gaussian, symmetric", "l2", _symmetric)
SPHERICAL = Mechanism("spherical laplace", "l2", _spherical, pure=True)
SPHERICAL_VECTOR = Mechanism("spherical laplace", "l2", _spherical_vector, pure=True)
# Only for statistics of which neighbours differ in one row, and in one number.
SPHERICAL_ROWS = Mechanism("spherical laplace, by rows", "l2", _spherical_rows, pure=True)
PIECEWISE = Mechanism("piecewise", "l1", _piecewise, True, piecewise_deviation)


@dataclass(frozen=True)
class Release:
    """One kind of release.

    Attributes
    ----------
    name : str
        As used in plans and reports.
    description : str
        The statistic in words; a mean over units, or under PartitionSelection a sum.
    query : type
        Type of the query, whose sensitivities are proved on the page.
    gaussian : Mechanism or PartitionSelection
        Law of the noise when delta > 0.
    pure : Mechanism or None
        Law of the noise when delta = 0; ``None`` where the statistic has none.
    proof : str
        Page under ``docs/proofs``.
    """

    name: str
    description: str
    query: type
    gaussian: Mechanism | PartitionSelection
    pure: Mechanism | None
    proof: str


CATALOGUE: dict[str, Release] = {
    entry.name: entry
    for entry in (
        Release(
            "document_frequencies",
            "words that enough documents contain, each with the number of those documents",
            DocumentFrequencies,
            PartitionSelection("gaussian, thresholded"),
            None,
            "document_frequencies.md",
        ),
        Release(
            "norm_histogram",
            "share of documents in each bin of a norm, from which a clip is chosen",
            NormHistogram,
            GAUSSIAN,
            LAPLACE,
            "norm_histogram.md",
        ),
        Release(
            "word_frequencies",
            "weighted mean counts of every word",
            WordFrequencies,
            GAUSSIAN,
            LAPLACE,
            "word_frequencies.md",
        ),
        Release(
            "pair_moments",
            "weighted mean second moment of counts",
            PairMoments,
            Mechanism("gaussian, symmetric", "l2", _pairs),
            Mechanism("laplace, symmetric", "l1", _laplace_pairs, pure=True),
            "pair_moments.md",
        ),
        Release(
            "whitened_triple_moments",
            "weighted mean third moment of counts in the released whitened space",
            WhitenedTripleMoments,
            SYMMETRIC,
            SPHERICAL,
            "whitened_triple_moments.md",
        ),
        Release(
            "triple_moments",
            "weighted mean third moment of counts, noised in word space, seen in a subspace",
            TripleMoments,
            Mechanism("gaussian, symmetric", "l2", _triples),
            Mechanism("spherical laplace", "l2", _spherical_triples, pure=True),
            "triple_moments.md",
        ),
        Release(
            "expected_counts",
            "mean expected counts of every word in every topic, given the released topics",
            ExpectedCounts,
            GAUSSIAN,
            LAPLACE,
            "expected_counts.md",
        ),
        Release(
            "second_moments",
            "mean second moment of samples clipped to a ball",
            SecondMoments,
            SYMMETRIC,
            SPHERICAL,
            "second_moments.md",
        ),
        Release(
            "third_moment_histogram",
            "share of samples in each bin of the norm of their projected third moment",
            ThirdMomentHistogram,
            GAUSSIAN,
            LAPLACE,
            "third_moment_histogram.md",
        ),
        Release(
            "projected_third_moments",
            "mean third moment of samples in a released subspace, clipped there",
            ProjectedThirdMoments,
            GAUSSIAN,
            SPHERICAL_VECTOR,
            "projected_third_moments.md",
        ),
        Release(
            "third_moments",
            "mean third moment of samples, noised in the whole space, seen in a subspace",
            ThirdMoments,
            GAUSSIAN,
            Mechanism("spherical laplace", "l2", _spherical_projection, pure=True),
            "third_moments.md",
        ),
        Release(
            "power_iterations",
            "one step of the power method on the third moment of samples, from all starts",
            PowerIterations,
            GAUSSIAN,
            SPHERICAL_VECTOR,
            "power_iterations.md",
        ),
        Release(
            "tensor_power_iterations",
            "one step of the power method on a private tensor, from all starts",
            TensorPowerIterations,
            GAUSSIAN,
            SPHERICAL_VECTOR,
            "tensor_power_iterations.md",
        ),
        Release(
            "entries",
            "the value of every entry",
            Entries,
            GAUSSIAN,
            PIECEWISE,
            "entries.md",
        ),
        Release(
            "row_sums",
            "weighted sums of the values in each row of each mode",
            RowSums,
            GAUSSIAN,
            LAPLACE,
            "row_sums.md",
        ),
        Release(
            "factor_sums",
            "right-hand sides of the normal equations of one factor",
            FactorSums,
            GAUSSIAN,
            SPHERICAL_ROWS,
            "factor_sums.md",
        ),
        Release(
            "entry_gradients",
            "gradient of the squared error in all parameters of the model",
            EntryGradients,
            GAUSSIAN,
            LAPLACE,
            "entry_gradients.md",
        ),
        Release(
            "ridge_block",
            "rows of one factor by ridge regression",
            RidgeBlock,
            GAUSSIAN,
            SPHERICAL_ROWS,
            "ridge_block.md",
        ),
        Release(
            "unit_levels",
            "mean over units of their level, and of their deviation from it",
            UnitLevels,
            GAUSSIAN,
            LAPLACE,
            "unit_levels.md",
        ),
        Release(
            "shared_row_sums",
            "sums over units of their clipped residuals in each row of a shared mode",
            SharedRowSums,
            GAUSSIAN,
            LAPLACE,
            "shared_row_sums.md",
        ),
        Release(
            "shared_factor_sums",
            "sums over units of what each would change in one shared factor",
            SharedFactorSums,
            GAUSSIAN,
            None,
            "shared_factor_sums.md",
        ),
        Release(
            "held_out_scores",
            "mean score of a released model over held-out units, clipped to public bounds",
            HeldOutScores,
            GAUSSIAN,
            LAPLACE,
            "held_out_scores.md",
        ),
    )
}
