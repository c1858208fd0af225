"""What a fit of topics is told, and what it leaves behind."""

from dataclasses import dataclass
from typing import Any

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.concentration import USUAL


@dataclass(frozen=True, eq=False)
class FittedTopics:
    """What a fit learned, all of it post-processing of releases."""

    topics: Floats  # (k, n_features): rows are distributions
    weights: Floats  # (k,): share of each topic
    unigram: Floats  # (n_features,): denoised word frequencies
    unigram_sigma: float  # noise of the released ones
    n_resolved: int  # eigenvalues of the second moment above its noise
    # (k, n_features) and (k,): how far noise may have moved them, as standard deviations.
    topics_std: Floats | None = None
    weights_std: Floats | None = None
    # (k,): of the leading words of each topic, by the released second moment; None where it is not
    # of these topics.
    coherence: Floats | None = None
    # (m,): leading eigenvalues of the released second moment, corrected for the prior.
    spectrum: Floats | None = None
    noise_edge: float | None = None  # what noise alone may lift one to
    # Sum of the Dirichlet prior in use; 0 for one topic per document.
    concentration: float = USUAL
    # (k0, n_features): public topics that the first ones began with and are shrunk towards; None
    # where there are none, or the data was better off without.
    public: Floats | None = None


@dataclass(frozen=True, eq=False)
class TopicOptions:
    """What a fit is told beside its plan."""

    # Sum of the Dirichlet prior; 0 for one topic per document, None to estimate it.
    concentration: float | None
    random_state: Any  # for restarts after release, and second starts without noise
    # Of the decomposition.
    n_restarts: int = 10
    max_iter: int = 100
    # (n_features,): public ones, positive and of sum 1, that noisy frequencies are shrunk towards.
    word_frequencies: Floats | None = None
    # (k0, n_features): rows are distributions; words that are 0 in all of them are unknown to them.
    public_topics: Floats | None = None
