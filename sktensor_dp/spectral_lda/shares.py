"""Shares of topics by public group, such as month or country: their releases, and errors."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import truncnorm
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.checks.composed import composed
from sktensor_dp.checks.display import Table
from sktensor_dp.checks.frames import is_dask, new_frame, refuse_other_row_order
from sktensor_dp.checks.parameters import Condition, Constraint, Number, OneOf, shown
from sktensor_dp.data.counts import ShareChunks
from sktensor_dp.data.labels import as_labels
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.estimator.base import NEIGHBOURS, FitResult, PrivateEstimatorMixin
from sktensor_dp.estimator.forecast import least_epsilon, sigma_of_mean
from sktensor_dp.estimator.inputs import UNIT_MARK, check_counted_alike, checked_groups
from sktensor_dp.exceptions import NotEnoughDataError, NotEnoughDataWarning
from sktensor_dp.model_files.container import require
from sktensor_dp.model_files.fields import Items, Maybe, Numbers, Plain, Real, SavedState
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.norm_histogram import NormHistogram
from sktensor_dp.queries.topic_shares import SharesByGroup
from sktensor_dp.spectral_lda import defaults
from sktensor_dp.spectral_lda.share_differences import (
    are_in_order,
    from_first_to_last,
    to_one,
    to_others,
)
from sktensor_dp.spectral_lda.share_forecast import FoundTopics, ShareForecast
from sktensor_dp.spectral_lda.share_noise import (
    chance_variance,
    common_words,
    confusion_of,
    inverse_of,
    mixing_by_groups,
    mixing_variance,
    squares_of_texts,
    variance_of_shares,
    variance_terms,
)
from sktensor_dp.spectral_lda.share_tables import (
    MARKS,
    ON_MERGED,
    columns_of,
    columns_of_differences,
    in_brief,
    table_on_page,
    text_on_screen,
)
from sktensor_dp.spectral_lda.texts_per_person import PersonBounds, release_person_bounds
from sktensor_dp.tensor.arrays import Floats, Integers
from sktensor_dp.topics.confusion import comparable_shares, without_hidden
from sktensor_dp.topics.inference import TINY
from sktensor_dp.topics.shrinkage import deviation_moments

# Deviations of noise within which a count is hidden: those of an interval of level 95 %.
HIDDEN = float(ndtri(0.975))
# Least noise of a group's move beside that of all groups' common one, relative to its own.
LEAST_OWN = 1e-6


@dataclass(kw_only=True)
class SavedShares(SavedState):
    """Serialisation schema: sums of shares of k topics in g groups, and what bounds their noise."""

    sums_: Annotated[Floats, Numbers("gk")]
    sigma_: Annotated[float, Real("+")]
    rest_sums_: Annotated[Floats, Numbers("gk")]
    rest_sigma_: Annotated[float, Real("+")]
    texts_per_person_: Annotated[float, Real("+")]
    spread_: Annotated[float, Real("+")]
    most_beyond_: Annotated[float, Real("+")]
    confusion_: Annotated[Floats, Numbers("kk")]
    without_hidden_: Annotated[Floats, Numbers("kk+")]
    mixing_covariance_: Annotated[Floats | None, Maybe(Numbers("kkk"))]
    visibility_: Annotated[list[str], Items(Plain(str), "k")]
    merged_: Annotated[str, Plain(str)]
    common_words_: Annotated[float, Real("+")]
    concentration_: Annotated[float, Real("+")]
    private_words_: Annotated[bool, Plain(bool)]

    def attributes(self, estimator: Any) -> dict[str, Any]:
        """Fitted attributes; ModelFileError if `visibility_` or `merged_` hold other words."""
        require({*self.visibility_} <= MARKS.keys(), f"visibility_ must be of {[*MARKS]}")
        require(self.merged_ in ON_MERGED, f"merged_ must be of {[*ON_MERGED]}")
        return super().attributes(estimator)


class TopicShares(PrivateEstimatorMixin, BaseEstimator):
    """Average shares of topics by public group; :meth:`PrivateSpectralLDA.shares_by` makes it.

    Attributes
    ----------
    shares_ : ndarray of shape (n_values, n_topics)
        Average shares of topics in the texts of each group, corrected for `confusion_`; NaN where
        noise hides how many texts there are (`hidden_`).
    counts_ : ndarray of shape (n_values,)
        Texts of each group with a word of the model, as they were released: with noise, and
        after units beyond the bound were scaled down. There are at least as many, but for noise.
    noise_std_, sampling_std_ : ndarray of shape (n_values, n_topics)
        Standard errors of the shares: by noise, and by chance where texts stand for others that
        might have been written; the latter at most, about.
    hidden_ : ndarray of shape (n_values,)
        True where noise hides how many texts there are.
    texts_per_person_ : float
        Bound on the Euclidean norm, with ``delta=0`` on the sum, of what one unit adds to all
        topics and groups, as a number of texts: 1 of documents; of persons given or released.
    spread_ : float
        Factor of the variance by chance where persons write several texts: mean square of their
        numbers of texts over the mean, from 1 to `texts_per_person_`; the latter if it was given.
    most_beyond_ : float
        Largest number of units beyond `texts_per_person_`, which are scaled down, at a level of
        about 97 % or more. All units where the bound was given for persons.
    sums_, sigma_ : ndarray of shape (n_values, n_topics), float
        Released sums of shares, and the standard deviation of the noise of each. Where the bound
        was chosen by a release, units count in them up to a smaller bound.
    rest_sums_, rest_sigma_ : ndarray of shape (n_values, n_topics), float
        The same for what units add from the smaller bound up to `texts_per_person_`; 0 without a
        smaller one.
    confusion_ : ndarray of shape (n_topics, n_topics)
        Matrix that takes shares in texts to those inferred, by least squares over texts drawn from
        the model. `sums_` are of inferred shares; `shares_` are the shares that explain them.
    without_hidden_ : ndarray of shape (n_topics, n_topics)
        Mixtures of seen topics, a row for each topic: that with words most like a hidden topic's,
        and a seen topic itself. A hidden topic may be no more than its mixture: `shares_` count
        half of its texts for the others, and intervals reach from none of them to all.
    mixing_covariance_ : ndarray of shape (n_topics, n_topics, n_topics) or None
        That of the model: intervals allow for as large errors of topics, at least.
    visibility_ : list of str of length n_topics
        "seen", or "hidden" where noise hides the topic (``hidden``).
    merged_ : str
        Whether a topic may hold several, whose shares are then together: "yes" where the model's
        pairs of words show more than were asked for; else "unknown", as noise may hide others,
        whose texts count for those seen.
    common_words_ : float
        How much of their words the two most alike of the topics seen have in common, from 0 to 1:
        sum of the lesser of their probabilities.
    concentration_ : float
        Sum of the model's Dirichlet prior: large where each text has all topics, 0 where each has
        one. It tells, with the differences of groups, how far these have mixed topics.
    private_words_ : bool
        True where `X` was counted by a vocabulary that a private fit chose: shares are of what the
        kept words show.
    privacy_report_ : PrivacyReport
        What was released, and what it cost.
    """

    _unit = "document"
    _saved = SavedShares
    _hidden_state = frozenset({"_inverse", "_mixing_by_groups", "_moments"})
    _privacy_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        name: rule
        for name, rule in PrivateEstimatorMixin._privacy_constraints.items()
        if name != "random_state"
    }
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "values": [Condition(lambda values: isinstance(values, list), "a list, or an array")],
        "texts_per_person": [OneOf("auto"), Number(1, 1e9)],
        **NEIGHBOURS,
    }
    sums_: Floats
    sigma_: float
    rest_sums_: Floats
    rest_sigma_: float
    texts_per_person_: float
    spread_: float
    most_beyond_: float
    confusion_: Floats
    without_hidden_: Floats
    mixing_covariance_: Floats | None
    visibility_: list[str]
    merged_: str
    common_words_: float
    concentration_: float
    private_words_: bool

    def __init__(
        self,
        values: list[Any],
        *,
        texts_per_person: float | str = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        neighbours: str = "replace_one",
        accountant: BudgetAccountant | None = None,
        verbose: int = 0,
    ) -> None:
        self.values = values
        self.texts_per_person = texts_per_person
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.accountant = accountant
        self.verbose = verbose

    def fit(
        self, model: Any, X: Any, by: Any, *, groups: ArrayLike | None = None, anyway: bool = False
    ) -> Self:
        """Release the shares of the topics of a fitted `model`, as its method `shares_by` says."""
        self._check_parameters()
        if any(map(is_dask, (X, by, groups))):
            raise TypeError(
                "X, by and groups must be in memory, got a collection of Dask: pass what .compute()"
                " returns. Nothing was charged."
            )
        if model.n_components_ < 2:
            raise NotEnoughDataError("Of a single topic every share is 100 %. Nothing was charged.")
        report = model.privacy_report_
        if (report.unit == "person") != (groups is not None) and math.isfinite(report.epsilon):
            raise ValueError(
                "groups must be given to both fits or to none: the topics protect each "
                f"{report.unit}, and together both would protect neither texts nor persons."
            )
        counts = model._validated_rows(X, reset=False, fits=True, grouped=groups is not None)
        labels = checked_groups(groups, X, counts.shape[0], self.neighbours)
        name = getattr(groups, "name", None)
        if name is not None and name == getattr(by, "name", None):
            raise ValueError(
                f"by must have several persons in each group, not be the column {name!r} of "
                "groups=. Nothing was charged."
            )
        places = self._places(by, counts.shape[0])
        for rows_or_owners in (X, groups):
            refuse_other_row_order(rows_or_owners, by, "by")
        confusion = confusion_of(model)
        rows = _by_group(counts, places, model, len(self.values), confusion)
        chunks = ShareChunks(rows, n_units=counts.shape[0], n_features=rows.shape[1], groups=labels)
        check_counted_alike(X, self.neighbours, chunks.n_units, grouped=groups is not None)
        if not anyway:
            n_units = math.inf if self._number_is_private else chunks.n_units
            found = FoundTopics.of(model, confusion)
            self._refuse(ShareForecast(self, found.seen, n_units, chunks.grouped, found), found)
        of_model = {
            "confusion_": confusion, "visibility_": model._visibility(),
            "without_hidden_": without_hidden(model.components_, model.hidden()),
            "mixing_covariance_": model.mixing_covariance_,
            "merged_": "yes" if model.n_components_seen_ > model.n_components else "unknown",
            "common_words_": common_words(model.components_[~model.hidden()]),
            "concentration_": float(model.doc_topic_prior_ * model.n_components_),
            "private_words_": hasattr(X, UNIT_MARK),
        }  # fmt: skip
        return self._fit_units(chunks, of_model)

    def _fit_units(self, chunks: ShareChunks, of_model: dict[str, Any]) -> Self:
        """Plan the releases, open, ask, publish; `of_model` are attributes known before."""
        shape = len(self.values), len(of_model["confusion_"])
        plan = self._plan(chunks.grouped)
        is_given = chunks.grouped and self.texts_per_person != "auto"
        texts = float(self.texts_per_person) if is_given else 1.0
        with self._session(chunks, plan) as ask:
            order = 1 if ask.is_pure else 2  # of the norm that noise is in proportion to
            bounds = PersonBounds(
                largest=texts,
                few=texts,
                spread=texts,
                most_beyond=float(ask.n_units) if is_given else 0.0,
            )
            if ask.left(NormHistogram):
                noise = self._noise_of_mean(ask.n_units, plan)
                bounds = release_person_bounds(ask, order, shape, noise)
            largest, few = bounds.largest * NORM_SLACK, bounds.few * NORM_SLACK
            rest, rest_sigma = np.zeros(shape), 0.0
            if few < largest:
                beyond_few = ask(SharesByGroup(largest, order, few)).as_sum()
                rest, rest_sigma = beyond_few.value.reshape(shape), beyond_few.sigma
            sums = ask(SharesByGroup(few, order), pooled=ask.left(SharesByGroup)).as_sum()
        found = {
            "sums_": sums.value.reshape(shape), "sigma_": sums.sigma,
            "rest_sums_": rest, "rest_sigma_": rest_sigma,
            "texts_per_person_": bounds.largest, "spread_": bounds.spread,
            "most_beyond_": bounds.most_beyond, **of_model,
        }  # fmt: skip
        return self._publish_result(self._with_report(ask, FitResult(found), {}))

    def _warnings_by_attributes(self) -> tuple[Warning, ...]:
        """Warnings, if any, of values whose shares noise hides, and of a bound with much noise."""
        said, hidden = [], [shown(self.values[place]) for place in np.flatnonzero(self.hidden_)]
        if hidden:
            more = f" and {len(hidden) - 5} more" if len(hidden) > 5 else ""
            doubt = " Are values written as in by?" if len(hidden) == len(self.values) else ""
            said.append(
                f"Noise hides how many texts there are of {', '.join(hidden[:5])}{more}.{doubt}"
            )
        # Noise of texts beyond the smaller bound, beside those up to it, of an average group.
        noise = HIDDEN * self.rest_sigma_ * math.sqrt(self.sums_.shape[1])
        if noise > max(float(self.sums_.sum(axis=1).mean()), 0.0):
            said.append(
                f"By a noisy histogram some persons have up to {self.texts_per_person_:,.3g} texts "
                "of one topic and group, and noise to protect so many makes intervals wide. If "
                "hardly anybody has so many, texts_per_person (--texts-per-person) says how many: "
                "1 of one answer each."
            )
        return tuple(map(NotEnoughDataWarning, said))

    def _plan(self, grouped: bool, epsilon: float | None = None) -> ReleasePlan:
        """Plan of the sums, up to a bound and beyond it, and of the histogram that chooses both."""
        name = SharesByGroup.name
        chooses = grouped and self.texts_per_person == "auto"
        fractions = defaults.FRACTIONS["shares_by_group"] if chooses else {name: 1.0}
        uses = {name: 1 + chooses}
        return ReleasePlan.split(epsilon or self.epsilon, self.delta, fractions, uses)

    def _noise_of_mean(self, n_units: float, plan: ReleasePlan) -> float:
        """Deviation of the noise of a mean over units, where each adds one text at most."""
        query = SharesByGroup(1.0, order=1 if self.delta == 0 else 2)
        return sigma_of_mean(query, plan.cost_of(query.name), n_units, self.neighbours)

    def expected_noise(self, n_units: float, grouped: bool, epsilon: float | None = None) -> float:
        """Standard error of a share by noise, where texts are spread evenly over groups.

        It is for units that all have as many texts as count, of one topic and group each; public
        numbers alone decide it.
        """
        return len(self.values) * self._noise_of_mean(n_units, self._plan(grouped, epsilon))

    def expected_chance(self, n_units: float, deviation: float) -> float:
        """Standard error of a share by chance, where each unit's own has this `deviation`.

        As for :meth:`expected_noise` texts are spread evenly over groups.
        """
        return deviation * math.sqrt(len(self.values) / n_units)

    def shows(
        self, n_units: float, factor: float, grouped: bool, epsilon: float | None = None
    ) -> bool:
        """Return True if noise of `factor` times `expected_noise` is too small to hide a number.

        `factor` is the number's relative noise, in units of the noise of a share. The number of
        texts is the sum of all shares, which is 1: its factor is the root of the number of topics.
        """
        return HIDDEN * factor * self.expected_noise(n_units, grouped, epsilon) < 1

    def _refuse(self, expected: ShareForecast, found: FoundTopics) -> None:
        """Raise NotEnoughDataError, uncharged, if shares of the topics found would say little."""
        if not (why := expected.why_not()):
            return
        shows = partial(self.shows, expected.n_units, found.factor, expected.for_persons)
        ways = ""
        if math.isfinite(found.factor) and not shows():
            least = least_epsilon(shows)
            advised = "" if least is None else f" or epsilon={least:g}"
            ways = f"It needs fewer values or more units{advised}. "
        raise NotEnoughDataError(
            f"{why}. Nothing was charged for it. {ways}To go on all the same: anyway=True."
        )

    def _places(self, by: Any, n_rows: int) -> Integers:
        """Place of each row's label among `values`; -1 for labels that are not listed."""
        labels, kinds = as_labels(by, n_rows, "by"), {*map(type, self.values)}
        padded = kinds == {str} and any(value != value.strip() for value in self.values)
        if kinds not in ({str}, {int}) or padded or len({*self.values}) < len(self.values):
            raise ValueError(
                "values must be a list of different integers, or of different strings without "
                "outer blanks: of one at least."
            )
        if n_rows and isinstance(labels.tolist()[0], str) != (kinds == {str}):
            raise ValueError("by and values must both hold integers, or both strings.")
        of_values, found = self.values, labels.tolist()
        if kinds == {str}:  # capitals count where values differ in these alone
            of_values, found = list(map(composed, of_values)), list(map(composed, found))
            folded = [*map(str.casefold, of_values)]
            if len({*folded}) == len(folded):
                of_values, found = folded, map(str.casefold, found)
        numbers = {value: place for place, value in enumerate(of_values)}
        return np.fromiter((numbers.get(one, -1) for one in found), np.intp, n_rows)

    @property
    def counts_(self) -> Floats:
        """Number of texts of each group, as it was released."""
        return np.asarray(self.sums_.sum(axis=1) + np.maximum(self.rest_sums_.sum(axis=1), 0.0))

    @property
    def hidden_(self) -> NDArray[np.bool_]:
        """Mask of groups whose number of texts is hidden by noise."""
        # Judged by texts up to the smaller bound: their number has the noise of all their sums.
        noise = HIDDEN * self.sigma_ * self.sums_.shape[1] ** 0.5
        return np.asarray(self.sums_.sum(axis=1) <= noise)

    @property
    def shares_(self) -> Floats:
        """Average shares in each group, within [0, 1]; NaN where noise hides the count."""
        return np.clip(self._moments[0], 0.0, 1.0)

    @property
    def noise_std_(self) -> Floats:
        """Standard errors of the shares by noise."""
        return np.sqrt(self._moments[1])

    @property
    def sampling_std_(self) -> Floats:
        """Standard errors of the shares by chance, at most, about."""
        variance = chance_variance(self.confusion_, self._inverse, self.shares_)
        return np.sqrt(self.spread_ * variance / self._counts_seen)

    @property
    def _counts_seen(self) -> Floats:
        """Counts as a column; NaN where noise hides them."""
        return np.where(self.hidden_, np.nan, self.counts_)[:, None]

    @cached_property
    def _inverse(self) -> Floats:
        """Matrix that takes sums of confused shares to those of topics; rows sum to 1."""
        return inverse_of(self.confusion_, self.without_hidden_)

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        """Average shares in each group, and variances of their errors by noise."""
        n, seen = self._counts_seen, ~self.hidden_
        added = self.rest_sums_.sum(axis=1, keepdims=True)
        of_few = n - np.maximum(added, 0.0)
        shares = np.clip(self.sums_ @ self._inverse / of_few, 0.0, 1.0)
        factor = variance_of_shares(self._inverse, shares)
        variance = factor * (self.sigma_ / of_few) ** 2
        # Texts beyond the smaller bound move shares as far as they are of other topics.
        moves = (self.rest_sums_ @ self._inverse - added * shares) / n
        noise = factor * (self.rest_sigma_ / n) ** 2 + (1 - of_few / n) ** 2 * variance
        moved, left = np.full((2, *shares.shape), np.nan)
        moved[seen], left[seen] = _shrunk(moves[seen], noise[seen])
        return shares + moved, variance + left

    @cached_property
    def _mixing_by_groups(self) -> Floats:
        """Second moments of errors of topics that were fitted as if groups did not differ."""
        seen = ~self.hidden_
        noise = np.square(self.noise_std_[seen])
        return mixing_by_groups(self.shares_[seen], self.counts_[seen], noise, self.concentration_)

    def mixing_variance(self, shares: Floats) -> Floats:
        """Variances (m, k) of shares (m, k), or differences of these, by errors of topics."""
        # Both are of the same words in wrong topics, so that the larger counts.
        of_model = mixing_variance(self.mixing_covariance_, shares)
        return np.maximum(of_model, mixing_variance(self._mixing_by_groups, shares))

    def interval(self, level: float = 0.9, *, sampling: bool = True) -> tuple[Floats, Floats]:
        """Intervals around the shares.

        Parameters
        ----------
        level : float, default=0.9
            About this fraction of them, or more, holds the share.
        sampling : bool, default=True
            True for the share in texts that might have been written, by as many persons like these;
            False for the share in the texts that were written, clipped as they are.

        Returns
        -------
        low, high : ndarray of shape (n_values, n_topics)
            Bounds from 0 to 1; NaN where noise hides the count.

        Notes
        -----
        They hold the shares s at which the sum less s times the count is within its own deviations
        (Fieller, 1954; without noise Wilson, 1927). As a share is from 0 to 1, they reach at least
        as far as the normal law of the estimate within these bounds: an estimate that noise takes
        beyond them makes no share certain. They allow for errors of topics: `mixing_covariance_`,
        or more where groups differ much and texts mix topics, as a fit takes the shares of all
        texts to follow one law. Beside hidden topics they are wider by half of what these hold or
        take from a topic.
        Lower ends of a group that add up to more than 1 are scaled down to that.

        **Privacy.** Made of released values alone; costs nothing.
        """
        self._check_level(level)
        deviations = float(ndtri((1 + level) / 2))
        squared = deviations**2
        n = self._counts_seen  # NaN where noise hides it, so that both ends are NaN, too
        shares, variance = self._moments
        sums, shares = shares * n, np.clip(shares, 0.0, 1.0)
        # Squares of deviations of a sum: noise (a - 2 b s + c s^2) for a share s, and by chance
        # chance (others + (own - others) s - s^2).
        a, b, c = variance_terms(self._inverse)
        noise = squared * variance * n**2 / variance_of_shares(self._inverse, shares)
        own, others = squares_of_texts(self.confusion_, self._inverse, shares)
        chance = squared * self.spread_ * n * sampling
        # (sums - s n)^2 is at most both together where square s^2 - 2 half s + end <= 0.
        square = n**2 - noise * c + chance
        half = sums * n - noise * b + chance * (own - others) / 2
        end = sums**2 - noise * a - chance * others
        root = np.sqrt(np.maximum(half**2 - square * end, 0.0))
        middle, width = half / square, root / square
        # Far beyond the bounds no s may be within its deviations: the width is then that of noise.
        scale = np.maximum(np.maximum(width / deviations, np.sqrt(variance)), TINY)
        within = truncnorm(-middle / scale, (1 - middle) / scale, middle, scale)
        # Shares are as far off, either way, if hidden topics are nothing or all there.
        by_topics = np.abs(shares @ self.without_hidden_ - shares)
        low = np.minimum(middle - width, within.ppf((1 - level) / 2))
        high = np.maximum(middle + width, within.ppf((1 + level) / 2))
        mixing = deviations * np.sqrt(self.mixing_variance(shares))
        low = np.minimum(shares - np.hypot(shares - low, mixing), low) - by_topics
        high = np.maximum(shares + np.hypot(high - shares, mixing), high) + by_topics
        low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
        low /= np.maximum(low.sum(axis=1, keepdims=True), 1.0)
        # At a higher level than that of `hidden_` the count may be hidden: any share is possible.
        is_hidden = n**2 <= noise * c
        return np.where(is_hidden, 0.0, low), np.where(is_hidden, 1.0, high)

    def differences(
        self, level: float = 0.9, *, to: Any = None, sampling: bool = True
    ) -> tuple[Floats, Floats, Floats]:
        """Differences of the shares of each group to those of another, or of all others together.

        Parameters
        ----------
        level : float, default=0.9
            About this fraction of their intervals holds the difference.
        to : int or str, default=None
            The group to compare with, one of `values`. None compares each group with the texts of
            all others: of two groups that is the gap between them, with either sign.
        sampling : bool, default=True
            As for :meth:`interval`.

        Returns
        -------
        difference, low, high : ndarray of shape (n_values, n_topics)
            NaN where noise hides the count of the group, or of the other.

        Notes
        -----
        Intervals are narrower than those of two shares suggest: errors of topics move the shares of
        like groups alike, and a difference in proportion to it. Of groups that do not differ, ten
        of 100 intervals of level 0.9 hold no 0; ``print`` marks differences that are all true
        together, nine times in ten, and so it does trends.

        **Privacy.** Made of released values alone; costs nothing.
        """
        self._check_level(level)
        if to is None:
            return to_others(self, level, sampling=sampling)
        if to not in self.values:
            raise ValueError(f"to must be one of values, got {shown(to)}.")
        return to_one(self, self.values.index(to), level, sampling=sampling)

    def trend(self, level: float = 0.9, *, sampling: bool = True) -> tuple[Floats, Floats, Floats]:
        """Change of the shares from the first to the last of `values`, in order, that can be seen.

        Parameters
        ----------
        level, sampling : float, bool
            As for :meth:`differences`.

        Returns
        -------
        change, low, high : ndarray of shape (n_topics,)
            Along a line through the shares of all groups that can be seen, equally far apart;
            NaN if noise hides all but one.

        Raises
        ------
        ValueError
            If `values` are neither dates, nor begin with numbers that rise, such as ages.

        Notes
        -----
        **Privacy.** Made of released values alone; costs nothing.
        """
        self._check_level(level)
        if not are_in_order(self.values):
            raise ValueError(
                "a trend needs values in order: years, months or days, or such as begin with "
                "numbers that rise. differences(to=...) compares groups without order."
            )
        change, low, high = from_first_to_last(self, level, sampling=sampling)
        return change[0], low[0], high[0]

    def _check_level(self, level: float) -> None:
        """Raise unless this is fitted, and `level` is between 0 and 1."""
        check_is_fitted(self)
        if not Number(0, 1, closed="neither").accepts(level):
            raise ValueError(f"level must be a number between 0 and 1, got {shown(level)}.")

    def _interval_of_counts(self, level: float) -> tuple[Floats, Floats]:
        """Ends (n_values,) of intervals of numbers of texts, after units were scaled down."""
        within, beyond = self.sums_.sum(axis=1), self.rest_sums_.sum(axis=1)
        root = self.sums_.shape[1] ** 0.5
        # What units add beyond the smaller bound is 0 or more: ends and median of its posterior.
        low, middle, high = np.tile(np.maximum(beyond, 0.0), (3, 1))
        if noise := self.rest_sigma_ * root:
            above = ndtr(np.maximum(beyond / noise, -30.0))  # in deviations: farther off it is 0
            tails = np.array([[(1 + level) / 2], [1 / 2], [(1 - level) / 2]])
            low, middle, high = np.maximum(beyond - noise * ndtri(tails * above), 0.0)
        half_width, middle_of_all = ndtri((1 + level) / 2) * self.sigma_ * root, within + middle
        low = middle_of_all - np.hypot(half_width, middle - low)
        high = middle_of_all + np.hypot(half_width, high - middle)
        return np.maximum(low, 0.0), np.maximum(high, 0.0)

    def __str__(self) -> str:
        """Intervals of the shares; before the fit the parameters."""
        return text_on_screen(self) if self._fitted_state() else repr(self)

    def _table(self) -> Table:
        return table_on_page(self)

    @property
    def in_brief(self) -> str:
        """Say of how many groups shares can be seen, and what their intervals leave out."""
        return in_brief(self)

    def table(self, level: float = 0.9) -> Any:
        """Shares as a table.

        Parameters
        ----------
        level : float, default=0.9
            Of the intervals, as for :meth:`interval`.

        Returns
        -------
        DataFrame of pandas
            One row for each group and topic: ``group``, ``texts_scaled`` (`counts_`) and the ends
            of its interval, ``texts_low`` and ``texts_high``, ``hidden`` (`hidden_`, of the
            group), ``topic`` (numbered from 1 as in ``topic_table``), its ``visibility``,
            ``share``, ``noise_std``, ``sampling_std``, ``mixing_std`` (by errors of topics), the
            ends of the interval, ``low`` and ``high``, and what it leaves out, alike in all rows:
            ``texts_per_person`` and ``scaled_down_at_most``, NaN where the bound was given for
            persons: it may be anybody; ``may_be_merged`` (`merged_`).
        """
        self._check_level(level)
        return new_frame(columns_of(self, level))

    def difference_table(self, level: float = 0.9) -> Any:
        """Differences of shares between groups as a table.

        Parameters
        ----------
        level : float, default=0.9
            As for :meth:`table`.

        Returns
        -------
        DataFrame of pandas
            One row for each comparison and topic: ``compared``, "pair" of each two of at most six
            groups, "others" of each of more groups with the texts of all others, and of three
            dates or more "trend" from the first that can be seen to the last (:meth:`trend`);
            ``group`` and ``other_group``, whose share is subtracted; ``topic`` and its
            ``visibility``; ``difference`` with the ends of its interval, ``low`` and ``high``, NaN
            where noise hides a group; ``clear``, True for those that ``print`` marks, at any
            `level`: nine times in ten all clear trends are right, and nine times in ten all other
            clear differences; ``may_be_merged``, as in :meth:`table`.
        """
        self._check_level(level)
        return new_frame(columns_of_differences(self, level))


def _shrunk(moves: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Posterior means and variances of moves of groups: one common to all, and each one's own."""
    if not variance.any():
        return moves, variance
    common_variance = 1 / (1 / variance).sum(axis=0)
    common = (moves / variance).sum(axis=0) * common_variance
    noise = np.sqrt(common_variance)
    mean, left = deviation_moments(common, noise, noise)  # `left`: variance
    own = np.sqrt(np.maximum(variance - common_variance, LEAST_OWN**2 * variance)).ravel()
    own_mean, own_left = deviation_moments((moves - common).ravel(), own, own)
    return mean + own_mean.reshape(moves.shape), left + own_left.reshape(moves.shape)


def _by_group(
    counts: sp.csr_matrix, places: Integers, model: Any, n_groups: int, confusion: Floats
) -> sp.csr_matrix:
    """Shares of topics in documents, each in the columns of its group, all of one `confusion`.

    Rows of documents without words, and of groups that are not listed, are empty.
    """
    k, kept = model.n_components_, (places >= 0) & (np.diff(counts.indptr) > 0)
    topics, prior, single = model._topics_and_prior()
    shares = comparable_shares(
        counts[kept], topics, prior, single, model.document_length_, to=confusion
    )
    columns = places[kept, None] * k + np.arange(k)
    ends = np.append(0, np.cumsum(kept * k))
    layout = shares.ravel(), columns.ravel(), ends
    return sp.csr_matrix(layout, (len(kept), n_groups * k))
