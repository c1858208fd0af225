"""What a fit of topics is told, and what it leaves behind."""

from dataclasses import dataclass
from typing import Any

from sktensor_dp.tensor.arrays import Floats


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
    topics_std, weights_std : ndarray of shape (k, n_features) and (k,), or None
        How far noise may have moved them, as standard deviations; None in files of before.
    coherence : ndarray of shape (k,) or None
        Of the leading words of each topic, by the released second moment; None where
        it is not of these topics.
    spectrum : ndarray of shape (m,) or None
        Leading eigenvalues of the released second moment, corrected for the prior.
    noise_edge : float or None
        What noise alone may lift one to.
    concentration : float or None
        Sum of the Dirichlet prior in use; 0 for one topic per document. None in files that
        are older than its estimation.
    public : ndarray of shape (k0, n_features) or None
        Public topics that the first ones began with and are shrunk towards; None where there
        are none, or the data was better off without.
    """

    topics: Floats
    weights: Floats
    unigram: Floats
    unigram_sigma: float
    n_resolved: int
    topics_std: Floats | None = None
    weights_std: Floats | None = None
    coherence: Floats | None = None
    spectrum: Floats | None = None
    noise_edge: float | None = None
    concentration: float | None = None
    public: Floats | None = None


@dataclass(frozen=True, eq=False)
class TopicOptions:
    """What a fit is told beside its plan.

    Attributes
    ----------
    concentration : float or None
        Sum of the Dirichlet prior; 0 for one topic per document, None to estimate it.
    geometry : {"isotropic", "histogram"}
        Of the noise of ``moment_tensor``.
    random_state : int, RandomState or None
        For restarts after release.
    n_restarts, max_iter : int
        Of the decomposition.
    word_frequencies : ndarray of shape (n_features,) or None
        Public ones, positive and of sum 1, that noisy frequencies are shrunk towards.
    public_topics : ndarray of shape (k0, n_features) or None
        Rows are distributions; words that are 0 in all of them are unknown to them.
    """

    concentration: float | None
    geometry: str
    random_state: Any
    n_restarts: int = 10
    max_iter: int = 100
    word_frequencies: Floats | None = None
    public_topics: Floats | None = None
