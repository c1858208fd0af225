"""The recipe of a topic model: ask the curator, work on what came back.

1. Clips and word frequencies. 2. Pair moments, whose leading eigenvectors are the
whitener. 3. Triple moments in the whitened space, decomposed into topics. 4. Either
topics are fitted to all moments jointly, or refined by EM steps on fresh releases.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.privacy.curators.documents import DocumentCurator, NoisyPairs
from sktensor_dp.spectral_topics.plan import TopicPlan
from sktensor_dp.tensor.power_method import orthogonal_decomposition
from sktensor_dp.tensor.symmetric import multilinear
from sktensor_dp.tensor.whitening import top_eigenpairs
from sktensor_dp.topics.denoise import denoise_frequencies, denoise_topics
from sktensor_dp.topics.moment_matching import ReleasedMoments, match_moments
from sktensor_dp.topics.moments import PriorCorrection, topics_from_components
from sktensor_dp.topics.rotation import varimax

__all__ = ["FittedTopics", "SpectralFit", "refine"]

Floats = NDArray[np.float64]

# Of the released frequencies in the start of EM, so that no word is ruled out:
# little where topics come from the third moment, more where they are a guess.
MIX_TRIPLES, MIX_ROTATION, MIX_FINAL = 0.01, 0.1, 1e-4
# An eigenvalue of the corrected moment below this share of the largest is rounding;
# so is a largest one below it, as the moment of one document of mean weight sums to 1.
LEAST_EIGENVALUE = 1e-12
# Memory of the running mean of expected counts: each step counts at least this.
LEAST_STEP = 0.3
# Geometry of the pair masses for isotropic noise, and for the histogram.
DIAGONAL_WEIGHTS = {"isotropic": np.sqrt(2.0), "histogram": 1.0}


@dataclass(frozen=True, eq=False)
class FittedTopics:
    """What a fit learned, all of it post-processing of releases.

    Attributes
    ----------
    topics : ndarray of shape (k, n_features)
        Rows are distributions.
    weights : ndarray of shape (k,)
        Share of each topic.
    unigram : ndarray of shape (n_features,)
        Denoised word frequencies.
    unigram_sigma : float
        Noise of the released ones.
    n_resolved : int
        Eigenvalues of the second moment above its noise.
    """

    topics: Floats
    weights: Floats
    unigram: Floats
    unigram_sigma: float
    n_resolved: int


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Whitening information, in units of one document of mean weight."""

    words: NDArray[np.intp] | None
    clips: tuple[Any, ...]
    total: float
    correction: PriorCorrection
    released: NoisyPairs
    corrected: Any
    scale: float
    edge: float
    values: Floats
    vectors: Floats

    def low_rank(self, V: Floats) -> Floats:
        """Corrected second moment, of the rank kept, times V."""
        return self.vectors @ (self.values[:, None] * (self.vectors.T @ V))


class SpectralFit:
    """Topics from released moments.

    Parameters
    ----------
    curator : DocumentCurator
        Holder of the documents.
    plan : TopicPlan
        What to release.
    concentration : float
        Sum of the Dirichlet prior; 0 for one topic per document.
    geometry : {"isotropic", "histogram"}
        Of the noise of ``moment_tensor``.
    random_state : RandomState
        For restarts after release.
    n_restarts, max_iter : int
        Of the decomposition.
    """

    def __init__(
        self,
        curator: DocumentCurator,
        plan: TopicPlan,
        *,
        concentration: float,
        geometry: str,
        random_state: np.random.RandomState,
        n_restarts: int = 10,
        max_iter: int = 100,
    ) -> None:
        self._curator = curator
        self._restarts: dict[str, Any] = {"n_restarts": n_restarts, "max_iter": max_iter}
        self._plan = plan
        self._concentration = concentration
        self._geometry = geometry
        self._in_word_space = plan.triples == "triple_moments"
        self._random_state = random_state

    def run(self) -> FittedTopics:
        """Make all releases of the plan and return the topics."""
        start, count_clip, frequencies = self._start()
        if self._plan.n_refinements == 0:
            return start
        return refine(
            self._curator,
            start,
            frequencies,
            count_clip,
            concentration=self._concentration,
            n_steps=self._plan.n_refinements,
        )

    def _start(self) -> tuple[FittedTopics, Any, Noisy]:
        plan, curator = self._plan, self._curator
        count_clip = curator.count_clip(plan.clip_quantile)
        clips = [count_clip]
        if plan.all_words:
            clips.append(self._pair_clip(None, count_clip))
        noisy = curator.word_frequencies(count_clip, clips[1:], 3 if plan.all_words else 0)
        total = max(float(noisy.value.sum()), 1e-9)
        frequencies = Noisy(noisy.value / total, noisy.sigma / total)
        unigram = denoise_frequencies(frequencies.value, frequencies.sigma)
        unigram = _normalised(unigram)
        pairs = self._pairs(frequencies, unigram, total, clips)
        topics, weights = self._topics(pairs, frequencies)
        topics = self._on_all_words(topics, pairs.words, unigram)
        resolved = int((pairs.values > pairs.edge).sum())
        fitted = FittedTopics(topics, weights, unigram, frequencies.sigma, resolved)
        return fitted, count_clip, frequencies

    def _pair_clip(self, words: NDArray[np.intp] | None, count_clip: Any) -> Any:
        if self._curator.pure:
            return count_clip
        return self._curator.pair_clip(self._plan.clip_quantile, words, **self._diagonal())

    def _diagonal(self) -> dict[str, float]:
        if not self._in_word_space:
            return {}
        weight = 1.0 if self._curator.pure else DIAGONAL_WEIGHTS[self._geometry]
        return {"diagonal_weight": weight}

    def _pairs(self, frequencies: Noisy, unigram: Floats, total: float, clips: list[Any]) -> _Pairs:
        """Release pair moments and keep the eigenpairs above their noise."""
        words, own, sigma = None, frequencies.value, frequencies.sigma
        if not self._plan.all_words:
            words = np.sort(np.argsort(-unigram, kind="stable")[: self._plan.n_words])
            own, sigma = unigram[words], 0.0
            clips = [self._pair_clip(words, clips[0])]
        released = self._curator.pair_moments(
            clips[-1], clips[:-1], 3 if words is None else 2, words, **self._diagonal()
        )
        if words is not None:
            # The documents' weights differ from those of the frequencies.
            assert released.matrix is not None
            total = max(float(released.matrix.sum()), 1e-12) / float(own.sum()) ** 2
        correction = PriorCorrection(self._concentration, own, sigma)
        scale = correction.pair_scale / total
        if released.matrix is not None:
            corrected: Any = correction.pair_matrix(released.matrix / total)
        else:
            corrected = correction.pairs(lambda V: released.product(V) / total)
        edge = _noise_edge(released.sigma * scale, correction)
        values, vectors = self._eigenpairs(corrected, len(own), edge)
        return _Pairs(
            words, tuple(clips), total, correction, released, corrected, scale, edge,
            values, vectors,
        )  # fmt: skip

    def _eigenpairs(self, operator: Any, n_words: int, edge: float) -> tuple[Floats, Floats]:
        k = min(self._plan.n_components, n_words)
        values, vectors = top_eigenpairs(
            operator, k, dim=n_words, tol=1e-5, random_state=self._random_state
        )
        kept = k
        if not self._plan.match_moments:
            kept = max(int((values > edge).sum()), 1)
        least = max(0.1 * edge, LEAST_EIGENVALUE * max(float(values[0]), LEAST_EIGENVALUE))
        return np.maximum(values[:kept], least), vectors[:, :kept]

    def _topics(self, pairs: _Pairs, frequencies: Noisy) -> tuple[Floats, Floats]:
        """Topics on the words of the pairs, and their shares."""
        k = len(pairs.values)
        if self._plan.triples is None:
            loadings = np.maximum(varimax(pairs.vectors * np.sqrt(pairs.values)), 0.0)
            return _normalised(loadings.T + 1e-300), np.full(k, 1 / k)
        basis = self._basis(pairs)
        noisy = self._triples(basis, pairs)
        mean_pairs = basis.T @ pairs.released.product(basis) / pairs.total
        triples = pairs.correction.triples(noisy.value, mean_pairs, basis)
        inner = _inverse_root(basis.T @ pairs.low_rank(basis))
        eigenvalues, vectors = orthogonal_decomposition(
            multilinear(triples, inner), k, **self._restarts, random_state=self._random_state
        )
        topics = topics_from_components(vectors @ (pairs.low_rank(basis) @ inner).T)
        weights = np.clip(np.maximum(eigenvalues, 1e-9) ** -2.0, 0.2 / k, 5 / k)
        weights /= weights.sum()
        if not self._plan.match_moments:
            return topics, weights
        sigma = noisy.sigma * pairs.correction.triple_scale
        return self._matched(topics, weights, pairs, frequencies, basis, triples, sigma)

    def _basis(self, pairs: _Pairs) -> Floats:
        """Public matrix in which the third moment is released."""
        if self._in_word_space:
            return pairs.vectors
        whitener = pairs.vectors / np.sqrt(pairs.values)
        norms = np.maximum(np.linalg.norm(whitener, axis=1), 1e-100)
        if self._plan.match_moments:
            # Every word equally long: the most that one document can add is least.
            return whitener / norms[:, None]
        return whitener * np.minimum(1, np.quantile(norms, 0.9) / norms)[:, None]

    def _triples(self, basis: Floats, pairs: _Pairs) -> Noisy:
        curator, quantile = self._curator, self._plan.triple_quantile
        if not self._in_word_space:
            clip = curator.whitened_triple_clip(quantile, basis, pairs.words, pairs.clips)
            noisy = curator.whitened_triples(basis, clip, pairs.clips, pairs.words)
        else:
            clip = pairs.clips[0]
            if not curator.pure:
                clip = curator.triple_clip(quantile, self._geometry == "histogram")
            noisy = curator.triples(basis, clip, pairs.clips, pairs.words)
        return Noisy(noisy.value / pairs.total, noisy.sigma / pairs.total)

    def _matched(
        self,
        topics: Floats,
        weights: Floats,
        pairs: _Pairs,
        frequencies: Noisy,
        basis: Floats,
        triples: Floats,
        triples_sigma: float,
    ) -> tuple[Floats, Floats]:
        limit = self._curator.limits.get("pairs", self._curator.limits["counts"])
        moments = ReleasedMoments(
            frequencies=frequencies.value,
            frequencies_sigma=frequencies.sigma,
            pairs=pairs.corrected,
            pairs_sigma=pairs.released.sigma * pairs.scale,
            diagonal_sigma=pairs.released.diagonal_sigma * pairs.scale,
            basis=basis,
            triples=triples,
            triples_sigma=triples_sigma,
            n_documents=self._curator.n_units,
            spread=(limit / pairs.total) ** 2,
        )
        return match_moments(topics, weights, moments)

    def _on_all_words(
        self, topics: Floats, words: NDArray[np.intp] | None, unigram: Floats
    ) -> Floats:
        """Words without released pairs keep their unigram frequency in every topic."""
        if words is not None:
            whole = np.tile(unigram, (len(topics), 1))
            whole[:, words] = topics * unigram[words].sum()
            topics = whole
        mix = MIX_FINAL
        if self._plan.n_refinements > 0:
            mix = MIX_ROTATION if self._plan.triples is None else MIX_TRIPLES
        return smoothed(topics, unigram, mix)


def refine(
    curator: DocumentCurator,
    start: FittedTopics,
    frequencies: Noisy,
    count_clip: Any,
    *,
    concentration: float,
    n_steps: int,
) -> FittedTopics:
    """EM steps on released expected counts, shrunk towards the unigram.

    Each step's release is averaged into those before it, which lowers the noise
    while topics still move; without noise every step stands alone.
    """
    topics, weights, unigram = start.topics, start.weights, start.unigram
    mean, variance = np.zeros_like(topics), 0.0
    for step in range(n_steps):
        noisy = expected_counts(curator, topics, weights, concentration, count_clip)
        rate = 1.0 if noisy.sigma == 0 else max(LEAST_STEP, 1 / (step + 1))
        mean = (1 - rate) * mean + rate * noisy.value
        variance = (1 - rate) ** 2 * variance + (rate * noisy.sigma) ** 2
        topics, unigram, weights = denoise_topics(
            mean, variance**0.5, frequencies.value, frequencies.sigma
        )
        topics = smoothed(topics, unigram, MIX_FINAL)
    return FittedTopics(topics, weights, unigram, frequencies.sigma, start.n_resolved)


def expected_counts(
    curator: DocumentCurator, topics: Floats, weights: Floats, concentration: float, clip: Any
) -> Noisy:
    """Ask for the expected counts of an EM step, under an even Dirichlet prior or one topic."""
    if concentration == 0:
        return curator.expected_counts(topics, weights, True, clip)
    prior = np.full(len(topics), concentration / len(topics))
    return curator.expected_counts(topics, prior, False, clip)


def smoothed(topics: Floats, unigram: Floats, share: float) -> Floats:
    """Mix topics with the unigram, itself mixed with a hundredth of the uniform."""
    background = 0.99 * unigram + 0.01 / unigram.size
    return (1 - share) * topics + share * background


def _noise_edge(sigma: float, correction: PriorCorrection) -> float:
    """What noise alone may lift an eigenvalue of the corrected second moment to."""
    return 2 * sigma * float(np.sqrt(len(correction.frequencies))) + correction.pair_shift


def _normalised(values: Floats) -> Floats:
    """Distributions along the last axis; uniform where there is nothing."""
    sums = values.sum(axis=-1, keepdims=True)
    uniform = 1 / values.shape[-1]
    return np.where(sums > 0, values / np.maximum(sums, 1e-300), uniform)


def _inverse_root(matrix: Floats) -> Floats:
    """Inverse square root of a positive semi-definite matrix, bounded where it has none."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    values = np.maximum(values, 1e-4 * max(float(values[-1]), 1e-300))
    return vectors / np.sqrt(values)
