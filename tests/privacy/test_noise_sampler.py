"""The exact sampler: its law, its tables, and the draws that are hard to decide.

Tests of a law reject the right one for one seed in a million. Against a scale wrong by
3 % or a mean wrong by 0.02 scales, N = 2^20 draws fail them but for one in a million:
the Kolmogorov-Smirnov distance is then at least 0.0055, or 5.6 / sqrt(N), whose standard
error is 0.39 / sqrt(N), against a threshold of 2.7 / sqrt(N); chi-square's noncentrality is
at least 400 (Fisher information 1 of a Laplace location) against a threshold of 160 in 80 bins.
"""

import itertools
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from internals import Revealed, second_look, settle
from randomgen import ChaCha
from scipy import stats
from scipy.special import kolmogi

from sktensor_dp.privacy import noise_sampler
from sktensor_dp.privacy.noise_sampler import (
    GAUSSIAN_DENSITY,
    LAPLACE_DENSITY,
    Density,
    rounded_samples,
)

N, ALPHA = 2**20, 1e-6
FAMILIES = {GAUSSIAN_DENSITY: stats.norm, LAPLACE_DENSITY: stats.laplace}
FAMILY_NAMES = ["gaussian", "laplace"]
every_law = pytest.mark.parametrize("law", FAMILIES, ids=FAMILY_NAMES)


def source(seed: int) -> Callable[[int], np.ndarray]:
    return ChaCha(key=seed, rounds=20).random_raw


def scripted(first: list[int], then: Callable[[int], np.ndarray]) -> Callable[[int], np.ndarray]:
    """Words as told, and others when these are used up."""
    waiting = list(first)

    def words(count: int) -> np.ndarray:
        told = [waiting.pop(0) for _ in range(min(count, len(waiting)))]
        return np.concatenate([np.array(told, np.uint64), then(count - len(told))])

    return words


def probability_of_chi_square(
    samples: np.ndarray, law: stats.rv_continuous, bits: int, width: int
) -> float:
    """P-value of counts of integers in bins of ``width``, out to 4.5 scales."""
    half, shift = int(4.5 * 2**bits / width), 0.5 if width % 2 == 0 else 0.0
    edges = (np.arange(-half, half + 2) - 0.5) * width
    observed = np.histogram(samples + shift, edges)[0]
    expected = samples.size * np.diff(law.cdf((edges - shift) / 2.0**bits))
    observed, expected = (np.append(of, samples.size - of.sum()) for of in (observed, expected))
    return float(stats.chisquare(observed, expected).pvalue)


def kolmogorov(samples: np.ndarray, law: stats.rv_continuous, bits: int) -> float:
    """Distance of the samples, spread over the steps they were rounded to."""
    jitter = np.random.default_rng(0).uniform(-0.5, 0.5, samples.size)
    spread = (samples + jitter) / 2.0**bits
    distance = stats.kstest(spread, law.cdf, method="asymp").statistic
    return float(distance * math.sqrt(samples.size))


@pytest.mark.parametrize("bits", [12, 35, 36, 51])
@every_law
def test_law_is_accepted_and_wrong_ones_are_rejected(law, bits, seed, monkeypatch):
    family = FAMILIES[law]
    samples = rounded_samples(law, N, bits, source(seed))
    width = 2 ** (bits - 4)
    assert kolmogorov(samples, family(), bits) < kolmogi(ALPHA)
    assert probability_of_chi_square(samples, family(), bits, width) > ALPHA
    if bits == 12:
        # With a margin of 1 every draw that one word did not settle takes decimal numbers.
        monkeypatch.setattr(noise_sampler, "MARGIN", 1.0)
        settled = rounded_samples(law, 5000, bits, source(seed))
        assert kolmogorov(settled, family(), bits) < kolmogi(ALPHA)
        for wrong in (family(scale=1.03), family(scale=1 / 1.03), family(loc=0.02)):
            assert kolmogorov(samples, wrong, bits) > kolmogi(ALPHA)
            assert probability_of_chi_square(samples, wrong, bits, width) < ALPHA


@pytest.mark.parametrize("bits", [0, 1, 2, 3])
@every_law
def test_every_integer_of_a_coarse_grid_has_its_probability(law, bits, seed):
    family = FAMILIES[law]
    samples = rounded_samples(law, N, bits, source(seed))
    assert probability_of_chi_square(samples, family(), bits, 1) > ALPHA
    # Rounding down instead would move a tenth of the mass and more.
    assert probability_of_chi_square(samples + 1, family(), bits, 1) < ALPHA


@pytest.mark.parametrize("bits", [24, 35, 36, 44, 51])
@every_law
def test_low_bits_are_uniform_and_independent_of_the_rest(law, bits, seed):
    samples = rounded_samples(law, N, bits, source(seed))
    for low in (samples & 255, samples[np.abs(samples) < 2**bits] >> 3 & 255):
        assert stats.chisquare(np.bincount(low, minlength=256)).pvalue > ALPHA
    pairs = np.bincount(((samples[::2] & 15) << 4) | (samples[1::2] & 15), minlength=256)
    assert stats.chisquare(pairs).pvalue > ALPHA
    # Each bit of the magnitude is as frequent on both sides: the difference of two shares of
    # N / 2 numbers has a standard error of 1 / sqrt(N) at most, and there are 51 bits.
    sides = -samples[samples < 0], samples[samples >= 0]
    for bit in range(bits):
        shares = [np.count_nonzero(side & 1 << bit) / side.size for side in sides]
        assert abs(shares[0] - shares[1]) < 5.7 / math.sqrt(N)


@every_law
def test_tables_are_those_of_the_density(law):
    with mpmath.workdps(80):
        energy = {"gaussian": lambda y: y * y / 2048, "laplace": lambda y: y / 32}[law.name]
        heights = [mpmath.exp(-energy(mpmath.mpf(j))) for j in range(6000)]
        total = mpmath.fsum(heights)
        sums = itertools.accumulate(height / total for height in heights)
        bounds = [int(mpmath.floor(running * 2**48)) for running in sums]
        below = [int(mpmath.floor(2**16 * b / a)) for a, b in pairwise(heights[:1500])]
    assert law.bounds.tolist() == [*(b for b in bounds if b < 2**48 - 1), 2**48 - 1]
    # Each entry of 16 bits holds 2^32 choices: its ends decide whether they agree.
    first = np.arange(2**16, dtype=np.uint64) << np.uint64(32)
    low = np.searchsorted(law.bounds, first, side="left")
    certain = low == np.searchsorted(law.bounds, first + np.uint64(2**32 - 1), side="right")
    cells, lots = law.table >> 47, law.table & (2**16 - 1)
    assert np.array_equal(cells[certain], low[certain])
    assert np.array_equal(lots[certain], np.array(below)[low[certain]])
    assert not lots[~certain].any()
    assert certain.mean() > 0.99


def test_no_memory_of_before_lies_beside_samples(monkeypatch):
    """What a release of many numbers is a view of is whole blocks, and is anyone's to look at."""
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, 77, dtype))
    samples = rounded_samples(GAUSSIAN_DENSITY, noise_sampler.BLOCK + 5, 10, source(0))
    assert samples.size == noise_sampler.BLOCK + 5
    assert samples.base is not None
    assert not samples.base[samples.size :].any()


def test_tables_do_not_depend_on_the_decimal_context():
    with localcontext() as context:
        context.prec = 4
        fresh = Density("other", lambda y: y * y / 2048)
        assert np.array_equal(fresh.table, GAUSSIAN_DENSITY.table)
        assert np.array_equal(fresh.bounds, GAUSSIAN_DENSITY.bounds)


@every_law
def test_double_precision_decides_as_decimal_numbers_do(law, seed):
    words = source(seed)
    word = words(400)
    look = second_look(law, word, words)
    assert not look.open.any()
    place = (word & noise_sampler.PLACE_MASK).astype(np.int64)
    found = [
        settle(law, look, i, Revealed(int(place[i]) >> 16, 31), words) for i in range(word.size)
    ]
    assert [cell for cell, _ in found] == look.cells.tolist()
    assert [accepted for _, accepted in found] == look.accepted.tolist()
    assert 0.95 < look.accepted.mean() <= 1


ZEROS, ONES = 0, 2**64 - 1


@pytest.mark.parametrize("bits", [20, 51])
@every_law
@pytest.mark.parametrize(("rest", "side"), [(ZEROS, 0), (ONES, 1)])
def test_tied_choices_are_decided_by_further_bits(law, bits, rest, side):
    # Place 0 and lot 0 accept in any case; the choice is a bound to the 48th bit.
    for cell in (0, 1, 17, 100, 200):
        bound = int(law.bounds[cell])
        more = [0] if bits == 51 else []
        first = [bound >> 32 << 48, *more, (bound & (2**32 - 1)) << 32, rest, rest, 0, 0, 0, 0]
        sample = rounded_samples(law, 1, bits, scripted(first, source(0)))
        assert abs(sample[0]) == round((cell + side) * 2.0 ** (bits - 5))


def test_tied_lots_are_decided_by_further_bits():
    # In cell 40 at place 1/2: accepted below exp(-(40 / 2 + 1 / 8) / 1024).
    with mpmath.workdps(60):
        ratio = mpmath.exp(-(mpmath.mpf(20) + mpmath.mpf(1) / 8) / 1024)
        lot = int(mpmath.floor(ratio * 2**48))
    choice = (int(GAUSSIAN_DENSITY.bounds[39]) + int(GAUSSIAN_DENSITY.bounds[40])) // 2
    for nearby, rest in itertools.product((-3, 0, 3), (ZEROS, ONES)):
        tied = lot + nearby
        word = choice >> 32 << 48 | 1 << 46 | tied >> 32
        fresh = (choice & (2**32 - 1)) << 32 | tied & (2**32 - 1)
        look = second_look(
            GAUSSIAN_DENSITY, np.array([word], np.uint64), scripted([fresh], source(0))
        )
        assert look.open.tolist() == [True]
        words = scripted([0, 0, rest, rest, 0, 0], source(0))
        # 128 more bits, all 0 or all 1, of a ratio that ends in neither.
        accepted = nearby < 0 or (nearby == 0 and rest == ZEROS)
        assert settle(GAUSSIAN_DENSITY, look, 0, Revealed(1 << 30, 31), words) == (40, accepted)


@pytest.mark.parametrize(
    ("law", "least"), [(GAUSSIAN_DENSITY, 15), (LAPLACE_DENSITY, 120)], ids=FAMILY_NAMES
)
def test_tails_are_not_cut_off(law, least):
    # 176 ones: a choice beyond the quantile of 2^-176; more are revealed until it is clear.
    first = [2**64 - 2**48, ONES << 32 & ONES, ONES, ONES, 0, 0, 0, 0]
    sample = rounded_samples(law, 1, 20, scripted(first, source(0)))
    assert least < abs(sample[0]) / 2**20 < 1.2 * least + 3


def test_any_size_is_drawn_and_too_fine_grids_are_refused():
    for size in (0, 1, 5, noise_sampler.BLOCK - 1, noise_sampler.BLOCK + 1):
        for bits in (10, 45):
            samples = rounded_samples(GAUSSIAN_DENSITY, size, bits, source(1))
            assert (samples.shape, samples.dtype) == ((size,), np.int64)
    with pytest.raises(ValueError, match="bits must be at most 51, got 52"):
        rounded_samples(GAUSSIAN_DENSITY, 3, 52, source(0))


@every_law
@pytest.mark.parametrize("digits", [50, 80])
def test_cells_are_as_probable_as_the_exponentials_say(law, digits):
    """Densities are products of ratios; their sums are right to ``10^(9 - digits)``."""
    with mpmath.workdps(digits + 30):
        heights = [mpmath.mpf(1)]
        while heights[-1] > mpmath.mpf(10) ** -digits:
            heights.append(mpmath.exp(-mpmath.mpf(str(law.energy(Decimal(len(heights)))))))
        found, total = law.cumulative(digits), mpmath.fsum(heights)
        assert len(found) == len(heights) < 10_000
        sums = itertools.accumulate(height / total for height in heights)
        for one, seen in zip(found, sums, strict=True):
            assert abs(mpmath.mpf(str(one)) - seen) < mpmath.mpf(10) ** (9 - digits)
