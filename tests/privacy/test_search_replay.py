"""A search shows what follows from its releases: recorded ones give the same elsewhere.

Noise, candidates and their number are seeded, as nothing else would make two searches
comparable; all trials' releases are on the tape.
"""

from itertools import count

import numpy as np
import pytest
from replaying import replay, watch
from small_searches import cells, completions, counts, gaussians, mixtures, topics
from small_texts import search, texts

from sktensor_dp import PrivateSearchCV, unsafe_seeded_noise
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.partition_selection import PartitionSelection

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
]


def seeded_fit(search, X):
    with unsafe_seeded_noise(3):
        return search.fit(*X) if isinstance(X, tuple) else search.fit(X)


def elsewhere(X):
    """Unrelated data of the same public shape; coordinates are public."""
    rng = np.random.default_rng(5)
    if isinstance(X, tuple):
        return X[0], rng.uniform(-50, 50, len(X[1]))
    return np.floor(10 ** rng.uniform(0, 6, X.shape))


SEARCHES = {
    "topics": (lambda: topics(random_state=0), counts()),
    "pure": (lambda: topics(random_state=0, delta=0), counts()),
    "three folds": (lambda: topics(random_state=0, cv=3), counts(90)),
    "mixtures": (lambda: mixtures({"data_norm": [5.0, 8.0]}, random_state=0), gaussians(300)),
    "completions": (lambda: completions(random_state=0), cells()),
    "input": (lambda: completions(random_state=0, perturbation="input"), cells()),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_nothing_but_releases_reaches_a_search(name):
    build, X = SEARCHES[name]
    seen = replay(build, seeded_fit, X, elsewhere(X))
    assert seen.error is None
    assert sum(release[0] == "held_out_scores" for release in seen.releases) >= 2


def other_texts(n):
    """Nothing is alike but the number: other words, other lengths, empty and huge documents."""
    rng = np.random.default_rng(7)
    return ["", "strange " * 9000, *(f"x{i} wordy{i % 3} " * rng.integers(9) for i in range(n - 2))]


@pytest.mark.parametrize("options", [{}, {"cv": 2}, {"step_shares": {"counts": 1, "topics": 3}}])
def test_nothing_but_releases_reaches_a_search_of_a_vocabulary_and_topics(options, monkeypatch):
    """Told the same words and numbers, a search of other texts is the same."""

    def told(self, name, query):
        self._admit(name, query, PartitionSelection)
        return [f"word{letter}" for letter in "abcd"], np.array([60.0, 80.2, 49.7, 61.1])

    monkeypatch.setattr(DataCurator, "release_partitions", told)
    build = lambda: search(random_state=0, **options)  # noqa: E731
    seen = replay(build, seeded_fit, texts(300), other_texts(300))
    assert seen.error is None
    released = [release[0] for release in seen.releases]
    assert released.count("word_votes") >= 2


def test_a_search_that_remembers_a_raw_score_is_caught(monkeypatch):
    publish = PrivateSearchCV._publish

    def leaking(self, attributes):
        publish(self, attributes)
        self.honest_score_ = self.best_estimator_.score(X if next(calls) == 0 else other)

    calls, X = count(), counts()
    other = elsewhere(X)
    monkeypatch.setattr(PrivateSearchCV, "_publish", leaking)
    with pytest.raises(AssertionError):
        replay(lambda: topics(random_state=0), seeded_fit, X, other)


def test_what_a_search_keeps_does_not_tell_of_other_trials():
    """State of the same size, whatever the number of trials."""
    sizes, numbers = set(), set()
    for seed in range(8):

        def fit(search, X, seed=seed):
            with unsafe_seeded_noise(seed):
                return search.fit(X)

        build = lambda: topics(param_distributions={"n_components": [2]}, n_trials=4)  # noqa: E731
        seen = watch(build, fit, counts())
        assert seen.error is None
        numbers.add(sum(release[0] == "held_out_scores" for release in seen.releases))
        names = [key for key, _ in seen.fitted[1]]
        sizes.add(str(names))
        assert len(seen.warnings) <= 2  # of one fit, and of seeding the noise
    assert len(numbers) > 2
    assert len(sizes) == 1
