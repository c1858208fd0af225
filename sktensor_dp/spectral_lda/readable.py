"""Readable topics: words, intervals, tables. All of it is post-processing."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.frames import new_frame
from sktensor_dp.checks.parameters import Number, check_sizes, shown
from sktensor_dp.estimator.base import names_of_columns
from sktensor_dp.spectral_lda.fitted import hidden_by_noise, on_more
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.measures import ranked_words

if TYPE_CHECKING:
    from sktensor_dp.privacy.report import PrivacyReport

Names = Sequence[str] | NDArray[np.generic] | None

# Number of tokens of all made-up documents for pyLDAvis together.
MADE_UP_TOKENS = 10_000.0


class ReadableTopics:
    """Mixin of a fitted topic model that shows its topics: words, intervals, tables."""

    n_components: int
    n_components_seen_: int
    components_: Floats
    components_std_: Floats
    mixing_covariance_: Floats | None
    coherence_: Floats | None
    topic_prior_: Floats
    unigram_: Floats
    n_features_in_: int
    privacy_report_: "PrivacyReport"

    @property
    def _shares(self) -> Floats:
        """Shares (k,) of the topics, of the words."""
        return self.topic_prior_ / self.topic_prior_.sum()

    def top_words(
        self, n_words: int = 10, feature_names: Names = None, relevance: float = 1.0
    ) -> list[list[str]]:
        """Leading words of every topic: the most probable, or the most distinctive.

        Parameters
        ----------
        n_words : int, default=10
            Number of words of each topic.
        feature_names : sequence of str of length n_features, optional
            Names of the columns; by default ``feature_names_in_``, or their numbers.
        relevance : float, default=1.0
            From 0 to 1. At 1 words are ranked by their probability. Below, words that set the
            topic apart come first, by ``relevance * log p + (1 - relevance) * log(p / unigram)``
            (Sievert & Shirley, 2014). There ``p`` is a probability less two deviations of its
            noise, and only words with ``p > unigram`` are listed. 0.6 is good for reading. Errors
            of topics beyond noise do not count: of short texts that share most of their words some
            words listed may be as likely in all topics.

        Returns
        -------
        list of list of str
            One list per topic in the order of ``components_``, the leading word first; empty where
            noise hides one of several topics. With `relevance` below 1 it may be shorter.

        Raises
        ------
        ValueError
            If a parameter is out of its range, or `feature_names` has another length, or a name
            that the fit knows as that of another column.

        Notes
        -----
        **Privacy.** Made of released values alone; costs nothing.

        Examples
        --------
        >>> from sktensor_dp import PrivateSpectralLDA
        >>> lda = PrivateSpectralLDA(2, doc_topic_prior=0).fit([[9, 9, 0], [9, 0, 9]] * 10000)
        >>> sorted(lda.top_words(1, ["say", "ship", "tax"], relevance=0.6))
        [['ship'], ['tax']]
        """
        check_is_fitted(self)
        check_sizes(n_words=n_words)
        names = self._names(feature_names)
        _check_fraction("relevance", relevance)
        order = ranked_words(
            self.components_, self.unigram_, self.components_std_, relevance, n_words
        )
        empty = self.hidden() & (len(order) > 1)  # a single topic is the word frequencies
        return [
            [] if is_empty else [str(names[word]) for word in row]
            for row, is_empty in zip(order, empty, strict=True)
        ]

    def components_interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Intervals around the probabilities of words, by noise and by topics that mixed words.

        Parameters
        ----------
        level : float, default=0.9
            Among words above the noise, about this fraction of intervals hold the word's
            probability where documents follow the model and topics were fitted by EM steps. Of
            topics of a joint fit to moments alone fewer hold it: in drawn texts of 60 words a fifth
            to two thirds of 90 % intervals. In topics that noise may have made, intervals reach the
            word's frequency in all texts.

        Returns
        -------
        low, high : ndarray of shape (n_components_, n_features)
            Bounds from 0 to 1.

        Notes
        -----
        Normal intervals of the variance ``components_std_[i, w]**2``, by noise, plus that by words
        that topics took from each other, as far as released counts tell: the sum over topics j of
        ``mixing_covariance_[j, i, i] * (components_[j, w] - components_[i, w])**2``. They leave out
        that another fit may find other topics, and most of what short documents that mix topics
        move where ``doc_topic_prior_`` is 0. Without ``mixing_covariance_`` they are of noise
        alone.

        **Privacy.** Made of released values alone; costs nothing.
        """
        check_is_fitted(self)
        _check_fraction("level", level)
        topics = self.components_
        reach = float(ndtri((1 + level) / 2)) * self._words_std() if level < 1 else np.inf
        return np.maximum(topics - reach, 0.0), np.minimum(topics + reach, 1.0)

    def _words_std(self) -> Floats:
        """Deviations (k, d) of probabilities of words, by noise and by topics that mixed words."""
        if self.mixing_covariance_ is None:
            return self.components_std_
        # Where a part x of the texts of topic i is found too much in topic j, the words of i are
        # x times those of j and 1 - x times those found; [j, i, i] is the variance of x.
        variances = np.einsum("jii->ij", self.mixing_covariance_)
        variance = [
            np.square(std) + of_topic @ np.square(self.components_ - topic)
            for std, of_topic, topic in zip(
                self.components_std_, variances, self.components_, strict=True
            )
        ]
        return np.minimum(np.sqrt(np.maximum(variance, 0.0)), 1.0)

    @property
    def _intervals_count(self) -> str:
        """Say which errors intervals of words count."""
        if self.mixing_covariance_ is None:
            return "of noise alone"
        said = "by noise and words that topics took from each other as far as releases tell"
        if all(row.name != "expected_counts" for row in self.privacy_report_.rows):
            said += "; of these topics, fitted to moments alone, fewer hold than stated"
        return said

    def topic_table(
        self,
        feature_names: Names = None,
        *,
        n_words: int = 10,
        relevance: float = 0.6,
    ) -> Any:
        """Topics as a table, the most frequent first.

        Parameters
        ----------
        feature_names : sequence of str of length n_features, optional
            As for :meth:`top_words`.
        n_words : int, default=10
            Number of words of each kind.
        relevance : float, default=0.6
            Ranks distinctive words, as for :meth:`top_words`.

        Returns
        -------
        DataFrame of pandas
            One row per topic, numbered from 1 by falling share (the index): ``words``, the most
            probable, and ``distinctive_words``; ``uncertainty``, how much of its probability noise
            may have moved to other words, at most; ``coherence``, UMass; ``hidden``, as
            :meth:`hidden`; ``component``, its row in ``components_``; and ``share``, of the words
            and without an interval (``topic_prior_``).

        Raises
        ------
        ImportError, ValueError
            Without pandas; as :meth:`top_words`.

        Notes
        -----
        **Privacy.** Made of released values alone; costs nothing.
        """
        check_is_fitted(self)
        shares = self._shares
        coherence, unknown = self.coherence_, np.full(len(shares), np.nan)
        table = {
            "words": map(" ".join, self.top_words(n_words, feature_names)),
            "distinctive_words": map(" ".join, self.top_words(n_words, feature_names, relevance)),
            "uncertainty": self._moved_by_noise(),
            "coherence": unknown if coherence is None else coherence,
            "hidden": self.hidden(), "component": np.arange(len(shares)),
            "share": shares,  # pandas prints the first and the last columns where lines are short
        }  # fmt: skip
        columns = {name: list(values) for name, values in table.items()}
        frame = new_frame({"topic": range(1, len(shares) + 1), **columns})
        return frame.set_index("topic")

    def to_pyldavis(self, feature_names: Names = None) -> dict[str, Any]:
        """Arguments of ``pyLDAvis.prepare``: draw topics by ``prepare(**model.to_pyldavis())``.

        Parameters
        ----------
        feature_names : sequence of str of length n_features, optional
            As for :meth:`top_words`.

        Returns
        -------
        dict
            ``topic_term_dists``, ``vocab``, and, as no documents are released, ``doc_topic_dists``,
            ``doc_lengths`` and ``term_frequency`` of one made-up document per topic.

        Notes
        -----
        **Privacy.** Made of released values alone; costs nothing.
        """
        check_is_fitted(self)
        lengths = MADE_UP_TOKENS * self._shares
        return {
            "topic_term_dists": self.components_, "doc_topic_dists": np.eye(len(lengths)),
            "doc_lengths": lengths, "vocab": [str(name) for name in self._names(feature_names)],
            "term_frequency": lengths @ self.components_,
        }  # fmt: skip

    def _names(self, feature_names: Names) -> Sequence[str] | NDArray[np.generic]:
        """Names of the columns: those given, ``feature_names_in_``, or numbers."""
        return names_of_columns(self, feature_names, self.n_features_in_)

    @property
    def in_brief(self) -> str:
        """Say how many of the topics asked for can be seen."""
        n_seen, topics = sum(~self.hidden()), counted(self.n_components, "topic")
        said = f"{n_seen} of {topics} can be seen above the noise."
        return f"{said} {on_more(self.n_components_seen_, self.n_components)}".rstrip()

    def hidden(self) -> NDArray[np.bool_]:
        """Mask of topics that noise hides: no word is surely more likely there than in all texts.

        Topics that neither the released pairs of words nor the EM steps of the first batch confirm
        are hidden, too.

        Returns
        -------
        ndarray of shape (n_components_,)
            False where the fit had no noise.
        """
        check_is_fitted(self)
        return hidden_by_noise(self.components_, self.unigram_, self.components_std_)

    def _moved_by_noise(self) -> Floats:
        """Fraction (k,) of each topic's probability that noise may have moved to other words."""
        # Mean absolute deviation of a normal law; half, since what one word loses another gains.
        moved = self.components_std_.sum(axis=1) * math.sqrt(2 / math.pi) / 2
        return np.asarray(np.minimum(moved, 1.0))

    def _visibility(self) -> list[str]:
        """Return for each topic whether it is "seen", or "hidden" by noise."""
        return ["hidden" if is_hidden else "seen" for is_hidden in self.hidden()]


def _check_fraction(name: str, value: float) -> None:
    """Raise ValueError unless a parameter is a number from 0 to 1."""
    if not Number(0, 1).accepts(value):
        raise ValueError(f"{name} must be a number from 0 to 1, got {shown(value)}.")
