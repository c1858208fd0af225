"""Public numbers of queries at and beyond the edge of what can be computed with.

Whatever a caller, or a release before, made of them: NaN, infinite, denormal, negative or
huge ones. A query refuses them when it is made, or keeps its promise: what a unit adds is
finite, and within the sensitivity that the noise is scaled to.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from sktensor_dp.privacy.curator import check_sensitivity, released_sensitivity
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.queries.counts import (
    Clip,
    CountChunk,
    CountNorm,
    NormHistogram,
    PairNorm,
    TripleNorm,
    WhitenedTripleNorm,
    WordFrequencies,
    as_counts,
)
from sktensor_dp.queries.entries import (
    Entries,
    EntryChunks,
    EntryPairs,
    IndexSet,
    RowCells,
    RowSums,
)
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.gradients import (
    EntryGradients,
    Jacobian,
    RidgeBlock,
    RowFrames,
)
from sktensor_dp.queries.moments import PairMoments, TripleMoments, WhitenedTripleMoments
from sktensor_dp.queries.samples import (
    LiftedBall,
    PowerIterations,
    ProjectedThirdMoments,
    SampleChunk,
    SecondMoments,
    TensorChunk,
    TensorPowerIterations,
    ThirdMomentHistogram,
    ThirdMoments,
    as_samples,
)
from sktensor_dp.queries.scores import HeldOutChunk, HeldOutScores
from sktensor_dp.queries.slices import (
    ReleasedEffects,
    SharedFactorSums,
    SharedRowSums,
    SliceChunks,
    UnitLevels,
)
from sktensor_dp.queries.text import N_BUCKETS, DocumentFrequencies, WordBuckets, WordVotes
from sktensor_dp.tensor.shared_parameters import SharedComponents, SharedEffects
from sktensor_dp.tensor.symmetric import symmetrize, tensor_oracle

pytestmark = pytest.mark.nightly

Rng = np.random.Generator
D, INF = 4, math.inf
# Around zero, one, the ranges that queries document, those of single and double precision.
SMALL_SIZES = [5e-324, 1e-320, 2.3e-308, 1e-300, 1e-200, 1e-155, 1e-101, 1e-60, 1e-38, 1e-16]
LARGE_SIZES = [1e9, 1e16, 1e38, 3.3e38, 3.4e38, 3.5e38, 1e60, 1e101, 1e154, 1e200, 1e300, 1.7e308]
NO_SIZES = [-5e-324, -1e-16, -1.0, -1e38, -1e300, INF, -INF, math.nan]
HOSTILE = [0.0, 1.0, *SMALL_SIZES, *LARGE_SIZES, *NO_SIZES]


@dataclass(frozen=True)
class Setting:
    """A way to ask for a release.

    ``sound`` holds public numbers, ``build`` makes a query of them, and ``neighbours``
    gives, for a query, data of which any two are neighbours.
    """

    release: str
    sound: dict[str, Any]
    build: Callable[..., Any]
    neighbours: Callable[[Any], list[Any]]


def documents(_: Any) -> list[CountChunk]:
    """Empty, short and long ones, of one word, of all words, as large as counts can be."""
    rows = [np.zeros(D), np.full(D, 2.0**30), *np.eye(D)[:2], *(9 * np.eye(D)[:2])]
    rows += [2.0**30 * np.eye(D)[0], np.array([1.0, 1, 1, 0]), np.array([5.0, 0, 3, 1])]
    return [CountChunk(as_counts(row[None, :])) for row in rows]


def samples(_: Any) -> list[SampleChunk]:
    """None, tiny, huge and opposite ones, alone and in the sparse form."""
    rows = [np.zeros(D), np.full(D, 1e-300), np.ones(D), -np.ones(D), np.full(D, 1e300)]
    rows += [np.eye(D)[0], -np.eye(D)[0], 1e300 * np.eye(D)[1], 1e-30 * np.eye(D)[1]]
    return [SampleChunk(as_samples(row[None, :])) for row in rows]


PLACES = IndexSet(np.array([[0, 0], [0, 1], [1, 1], [2, 0]]), (3, 2))


def entries(query: Any) -> Iterator[EntryChunks]:
    """One value at either end and beyond, and in the middle; the others at one end."""
    half = query.half
    for value in (-1.7e308, -half, 0.0, half, 1.7e308):
        values = np.array([value, half, -half, half])
        yield EntryChunks(PLACES.coordinates, values, PLACES.shape, (-half, half))


def units(limits: tuple[float, float]) -> list[SliceChunks]:
    """A unit without entries, with one, in one row, in all rows; beside it one other."""
    low, high = limits
    middle = low / 2 + high / 2
    found = []
    for rows, values in (
        ([], []), ([[0, 0]], [high]), ([[0, 0]], [-1.7e308]), ([[0, 0], [0, 1]], [low, high]),
        ([[0, 0], [1, 1], [2, 0]], [high, high, low]), ([[2, 1], [1, 0]], [middle, low]),
    ):  # fmt: skip
        own = np.array(rows, dtype=np.intp).reshape(-1, 2)
        coordinates = np.vstack([np.insert(own, 0, 0, axis=1), [[1, 0, 0], [1, 1, 1]]])
        y = np.array([*values, high, low])
        found.append(SliceChunks(coordinates, y, (2, 3, 2), 0, limits))
    return found


def tensors(query: TensorPowerIterations) -> list[TensorChunk]:
    """Two that differ by the bound in one entry, among entries as large as they can be."""
    largest = 1e6 * query.bound
    one = symmetrize(np.random.default_rng(0).uniform(-largest, largest, (D, D, D)))
    other = one.copy()
    # What differs in the six orders of an entry differs by six times the bound where they agree.
    other[0, 0, 0] += 6 * query.bound
    return [TensorChunk(tensor_oracle(tensor)) for tensor in (one, other)]


def scores(_: Any) -> list[HeldOutChunk]:
    values = [0.0, 1e308, -1e308, INF, -INF, math.nan, 5e-324, 0.5]
    return [HeldOutChunk(np.array([value, 0.25]), None, 2) for value in values]


def texts(_: Any) -> list[list[list[str]]]:
    return [[[]], [["a"]], [list("abcdefgh")], [list("ijklmnop") * 3]]


# Builders; what they are given may be hostile


def whitened(whitener: Any, limit: Any, other: Any) -> WhitenedTripleMoments:
    clips = (Clip(WhitenedTripleNorm(whitener), limit), Clip(CountNorm(2), other))
    return WhitenedTripleMoments(whitener, clips)


def pairs(limit: Any, of_clip: Any, of_noise: Any, min_tokens: Any) -> PairMoments:
    return PairMoments(Clip(PairNorm(of_clip), limit), of_noise, min_tokens=min_tokens)


def histogram(edges: Any, whitener: Any, limit: Any, min_tokens: Any) -> NormHistogram:
    clips = (Clip(CountNorm(2), limit),)
    return NormHistogram(WhitenedTripleNorm(whitener), edges, clips, min_tokens)


def thirds(kind: type, basis: Any, radius: Any, offset: Any, weight: Any, **options: Any) -> Any:
    return kind(basis, LiftedBall(radius, offset), weight, **options)


def second_moments(radius: Any, offset: Any) -> SecondMoments:
    return SecondMoments(LiftedBall(radius, offset))


def ridge_block(rows: Any, ridge: Any, half: Any) -> RidgeBlock:
    return RidgeBlock(RowFrames(PLACES, 0, rows, ridge), half)


def gradients(first: Any, second: Any, core: Any, half: Any) -> EntryGradients:
    return EntryGradients(Jacobian(PLACES, [first, second], core, core is not None), half)


def shared_factors(
    level: Any, effect: Any, variance: Any, popularity: Any, noise_variance: Any, scale: Any,
    first: Any = None, second: Any = None,
) -> SharedFactorSums | SharedRowSums:  # fmt: skip
    effects = (SharedEffects(effect, variance, popularity, 1.0), KNOWN)
    if first is None:
        about = ReleasedEffects(effects, level, noise_variance)
        return SharedRowSums(1, (2, 3, 2), 0.0, scale, 1.0, about=about)
    components = SharedComponents((first, second), full_core=False)
    return SharedFactorSums(0, (2, 3, 2), level, effects, components, noise_variance, scale)


OF_UNITS = {"effect": np.zeros(3), "variance": np.ones(3), "popularity": np.zeros(3)}
OF_UNITS |= {"level": 0.5, "noise_variance": 0.2, "scale": 0.5}
RNG = np.random.default_rng(7)
BASIS, SMALL = RNG.standard_normal((D + 1, 2)), RNG.standard_normal((D, 2))
FRAME = np.linalg.qr(RNG.standard_normal((D + 1, 2)))[0]
START = np.linalg.qr(RNG.standard_normal((D, 2)))[0]
TOPICS = RNG.dirichlet(np.ones(D), 2)
ROWS, FACTORS = RNG.standard_normal((4, 2)), [RNG.standard_normal((n, 2)) for n in (3, 2)]
SAMPLE = {"basis": BASIS, "radius": 2.0, "offset": 1.0, "weight": 0.7}
TOPIC = {"topics": TOPICS, "prior": np.array([0.3, 0.7]), "limit": 1.5}
GRADIENT = {"first": FACTORS[0], "second": FACTORS[1], "half": 1.5}
PAIR_NUMBERS = {"predictions": ROWS[:, 0], "weights": np.arange(3) / 2, "scale": 0.5, "half": 1.5}
CELLS = RowCells(PLACES, 0)
EDGES = np.array([0.1, 1.0, 9.0, 80.0])
UNIT = (-1.5, 2.5)
KNOWN = SharedEffects(np.zeros(2), np.ones(2), np.zeros(2), 1.0)

SETTINGS = [
    Setting("document_frequencies", {"max_words_per_document": 3}, DocumentFrequencies, texts),
    Setting("word_buckets", {"max_words_per_document": 3}, WordBuckets, texts),
    Setting(
        "word_votes", {"max_words_per_document": 3, "largest": 1.5, "weight": 0.5},
        lambda max_words_per_document, largest, weight: WordVotes(
            max_words_per_document, largest, np.full(N_BUCKETS, weight)
        ),
        texts,
    ),
    Setting(
        "norm_histogram", {"edges": EDGES, "whitener": SMALL, "limit": 2.0, "min_tokens": 1},
        histogram, documents,
    ),
    *(
        Setting(
            "word_frequencies", {"limit": 1.5, "min_tokens": 1},
            lambda limit, min_tokens, order=order: WordFrequencies(
                Clip(CountNorm(order), limit), min_tokens=min_tokens
            ),
            documents,
        )
        for order in (1, 2)
    ),
    Setting(
        "pair_moments", {"limit": 1.5, "of_clip": 1.0, "of_noise": 0.7, "min_tokens": 2}, pairs,
        documents,
    ),
    Setting(
        "whitened_triple_moments", {"whitener": SMALL, "limit": 1.5, "other": 3.0}, whitened,
        documents,
    ),
    *(
        Setting(
            "triple_moments", {"limit": 1.5},
            lambda limit, norm=norm: TripleMoments(np.eye(D), (Clip(norm, limit),)), documents,
        )
        for norm in (TripleNorm(), CountNorm(1))
    ),
    *(
        Setting(
            "expected_counts", TOPIC if scales is None else {**TOPIC, "scales": scales},
            lambda single=single, order=order, **given: ExpectedCounts(
                single=single, order=order, **given
            ),
            documents,
        )
        for single in (True, False)
        for order, scales in ((1, None), (2, None), (2, np.geomspace(0.2, 5, D)))
    ),
    Setting("second_moments", {"radius": 2.0, "offset": 1.0}, second_moments, samples),
    Setting(
        "third_moment_histogram", {**SAMPLE, "edges": EDGES}, partial(thirds, ThirdMomentHistogram),
        samples,
    ),
    Setting(
        "projected_third_moments", {**SAMPLE, "limit": 0.5}, partial(thirds, ProjectedThirdMoments),
        samples,
    ),
    Setting("third_moments", {**SAMPLE, "basis": FRAME}, partial(thirds, ThirdMoments), samples),
    Setting("power_iterations", {"starts": START, "radius": 2.0}, PowerIterations, samples),
    Setting(
        "tensor_power_iterations", {"starts": START, "bound": 2.0}, TensorPowerIterations, tensors
    ),
    Setting("entries", {"half": 1.5}, Entries, entries),
    Setting(
        "row_sums", {"weights": ROWS, "half": 1.5},
        lambda weights, half: RowSums(PLACES, weights, half), entries,
    ),
    Setting(
        "ridge_block", {"rows": ROWS, "ridge": np.array([0.1, 0.2]), "half": 1.5},
        ridge_block, entries,
    ),
    Setting("entry_pairs", PAIR_NUMBERS, partial(EntryPairs, CELLS), entries),
    Setting("entry_gradients", GRADIENT, partial(gradients, core=None), entries),
    Setting("entry_gradients", {**GRADIENT, "core": np.eye(2)}, gradients, entries),
    Setting("unit_levels", {"half": 2.0}, UnitLevels, lambda of: units((-of.half, of.half))),
    Setting(
        "shared_row_sums",
        {"level": 0.5, "scale": 0.3, "shrinkage": 2.0, "effect": np.array([0.1, -0.2])},
        lambda effect, **k: SharedRowSums(1, (2, 3, 2), effects=(None, None, effect), order=1, **k),
        lambda _: units(UNIT),
    ),
    Setting("shared_row_sums", OF_UNITS, shared_factors, lambda _: units(UNIT)),
    Setting("shared_factor_sums", {**OF_UNITS, "first": FACTORS[0], "second": FACTORS[1]},
            shared_factors, lambda _: units(UNIT)),
    Setting("held_out_scores", {"low": -1.0, "high": 1.0},
            partial(HeldOutScores, lambda X, y: X), scores),
]  # fmt: skip

every_setting = pytest.mark.parametrize(
    "setting", [pytest.param(s, id=f"{i}-{s.release}") for i, s in enumerate(SETTINGS)]
)


def spoiled(value: Any, number: float) -> Iterator[Any]:
    """A hostile number in place of a public one; of arrays in all places, in one, as a factor."""
    if not isinstance(value, np.ndarray):
        yield number
        return
    yield np.full_like(value, number)
    one = value.astype(float)
    one.flat[0] = number
    yield one
    with np.errstate(all="ignore"):
        yield value * number


def breach(setting: Setting, parameters: dict[str, Any]) -> str | None:
    """What is wrong with a query of these numbers, if it is neither refused nor sound."""
    with np.errstate(all="ignore"):
        try:
            query = setting.build(**parameters)
        except (TypeError, ValueError):
            return None
        if setting.release in ("document_frequencies", "word_votes"):
            bound = math.sqrt(2 * query.max_partitions)
            sound = 0 < bound == query.l2_sensitivity < INF
            root = math.sqrt(query.max_partitions)
            return None if sound and query.l2_contribution == root else "sensitivity"
        entry = CATALOGUE[setting.release]
        bounds = []
        for law in filter(None, (entry.gaussian, entry.pure)):
            moved = released_sensitivity(law, query, 1)
            try:
                check_sensitivity(moved, query)
            except RuntimeError:
                continue
            bounds.append((law.norm, moved))
        if not bounds:
            return None
        found = [np.ravel(query.total(chunk)) for chunk in setting.neighbours(query)]
        if not all(np.isfinite(total).all() for total in found):
            return "a contribution is not finite"
        for one, other in combinations(found, 2):
            for norm, bound in bounds:
                share = np.linalg.norm((one - other) / bound, 1 if norm == "l1" else 2)
                # One value of an entry moves by the width itself, without slack for rounding.
                if not share <= 1 + 1e-12:
                    return f"neighbours are {share:.3g} of the {norm} sensitivity apart"
    return None


def test_every_entry_of_the_catalogue_meets_hostile_numbers():
    # A count of units has no numbers.
    assert {setting.release for setting in SETTINGS} == set(CATALOGUE) - {"unit_count"}


@every_setting
def test_sound_numbers_are_accepted(setting):
    query = setting.build(**setting.sound)
    assert isinstance(query, CATALOGUE[setting.release].query)
    assert breach(setting, setting.sound) is None


@every_setting
def test_a_hostile_number_is_refused_or_harmless(setting):
    """Each of them in the place of each public number, the others as they should be."""
    for name, sound in setting.sound.items():
        for number in HOSTILE:
            for value in spoiled(sound, number):
                assert breach(setting, {**setting.sound, name: value}) is None, (name, number)


@every_setting
def test_hostile_numbers_together_are_refused_or_harmless(setting, seed):
    """Several at a time, and sizes drawn from all that floating point holds."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        parameters = dict(setting.sound)
        for name in rng.permutation(list(parameters))[: rng.integers(1, 4)]:
            drawn = float(10 ** rng.uniform(-322, 308) * rng.choice([-1.0, 1.0, 1.0, 1.0]))
            number = drawn if rng.random() < 0.6 else float(rng.choice(HOSTILE))
            choices = list(spoiled(parameters[name], number))
            parameters[name] = choices[rng.integers(len(choices))]
        assert breach(setting, parameters) is None, parameters
