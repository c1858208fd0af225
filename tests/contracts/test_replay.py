"""All that a fit shows follows from its noisy answers: one contract for all ways to fit.

Bits are compared, so that a sound fit passes whatever the noise is; options choose the way through
the code, and a way that keeps what was not released keeps it of most data.
"""

from functools import partial
from itertools import product

import numpy as np
import pytest
import small_searches
from cases import AT_NIGHT
from contracts import neighbours, ways
from contracts.replay_rows import DELTAS, Row, check, named
from contracts.ways import SMALL
from replaying import replay, state, watch

from sktensor_dp import NotEnoughDataWarning
from sktensor_dp.privacy.catalogue import CATALOGUE

ROWS = [*ways.UNRELATED, *neighbours.ROWS]


# Others of the same kind are replayed by day.
OF_NIGHT = "CP, persons, last", "CP, persons, named rows", "mixtures, many", "mixtures, spherical"


def of_night(row: Row) -> bool:
    if row.name in OF_NIGHT:
        return True
    return row.name.startswith(AT_NIGHT) and "Tucker, persons, directions" not in row.name


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.name, marks=[pytest.mark.nightly] * (row.nightly or of_night(row)))
        for row in ROWS
    ],
)
def test_a_fit_shows_nothing_but_its_noisy_answers(row, seed):
    check(row, seed)


# Ways that release, together, all that the catalogue lists.
EVERY_RELEASE = (
    "search", "words, pairs", "counted topics, few left, whole", "topics, word space", "topics",
    "components", "mixtures", "components, all dimensions", "components, tensor",
    "components, each step", "Tucker, persons, directions", "CP", "CP, gradients",
    "CP, range chosen", "check", "shares, of persons",
    "CP, output, resolved", "CP, pairs, epsilon 1",
)  # fmt: skip


def test_every_release_of_the_catalogue_takes_part():
    found = set()
    for name, seed in product(EVERY_RELEASE, (0, 1)):
        row = named(ROWS, name)
        X, _ = row.pair(np.random.default_rng([seed, row.place]))
        with pytest.MonkeyPatch.context() as patch:
            for path, value in row.forced.items():
                patch.setattr(f"sktensor_dp.{path}", value)
            found |= set(watch(partial(row.build, DELTAS[seed]), row.fit, X).releases)
    assert found == set(CATALOGUE)


def test_names_of_rows_are_their_own():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ["topics", "components, stream", "CP, persons", "search"])
def test_without_recorded_answers_fits_differ(name):
    """Replay is compared against values that matter."""
    row = named(SMALL, name)
    X, _ = row.pair(np.random.default_rng(0))
    first, second = (watch(lambda: row.build(1e-6), row.fit, X) for _ in range(2))
    assert first.shown["attributes"] != second.shown["attributes"]


WARNED = {
    "topics": ("topics, moments", lambda rng: (
        np.ones((5000, 20)), ways.documents(rng, 5000, 20))),
    "components": ("components", lambda rng: (
        np.zeros((5000, 7)), 3 * ways.components(rng, 5000, 7))),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNED)
def test_warnings_follow_from_recorded_answers(name, seed):
    """One in the recorded fit and none, on its own data, in the other; and the other way round."""
    row_name, draw = WARNED[name]
    row, (X, other) = named(SMALL, row_name), draw(np.random.default_rng(seed))

    build = lambda: row.build(1e-6).set_params(epsilon=20.0, n_components=3)  # noqa: E731
    assert replay(build, row.fit, X, other).warned == [NotEnoughDataWarning]
    assert replay(build, row.fit, other, X).warned == []


def test_a_generator_tells_its_state_apart():
    """A stream carries one on: two that would draw other numbers are not the same."""
    one, other = np.random.default_rng(0), np.random.default_rng(0)
    assert state(one) == state(other)
    one.standard_normal()
    assert state(one) != state(other)


def test_what_a_search_keeps_does_not_tell_of_other_trials():
    """The same attributes, and a warning of the model at most, whatever the number of trials."""
    kept, numbers = set(), set()
    for _ in range(8):
        build = lambda: small_searches.topics(n_trials=4)  # noqa: E731
        seen = watch(build, lambda search, X: search.fit(X), small_searches.counts(60))
        assert seen.error is None
        numbers.add(seen.releases.count("held_out_scores"))
        kept.add(str(sorted(vars(seen.estimator))))
        # One more warns of the search, by public numbers.
        assert len(seen.warned) <= 2
    # Numbers of trials are geometric: eight equal ones of mean 4 have a chance of 1e-5 or less.
    assert len(numbers) > 1
    assert len(kept) == 1
