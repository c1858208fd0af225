"""Noise against OpenDP: two samplers of the same law, by other hands."""

import math

import numpy as np
import pytest
from opendp_samples import opendp_samples
from scipy import stats

from sktensor_dp.privacy.noise import NoiseSource

N = 20_000


# Unseeded, as OpenDP can only be: every threshold is passed but for one run in a million.
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_both_samplers_agree_in_law(law: str) -> None:
    size = N if law == "laplace" else math.sqrt(N)
    grid = NoiseSource().grid(1 / 0.7, size)
    ours = getattr(NoiseSource(), law)(np.zeros(N), 0.7)
    theirs = opendp_samples(law, N, grid.bits) * grid.step
    assert stats.ks_2samp(ours, theirs, method="asymp").pvalue > 1e-6
    family = stats.laplace if law == "laplace" else stats.norm
    for released in (ours, theirs):
        # On one and the same grid, with even low digits.
        steps = np.rint(released / grid.step)
        assert np.array_equal(steps * grid.step, released)
        counts = np.bincount(steps.astype(np.int64) % 16, minlength=16)
        assert stats.chisquare(counts).pvalue > 1e-6
        accepted = stats.kstest(released, family(scale=grid.scale).cdf, method="asymp")
        assert accepted.pvalue > 1e-6
        # 8 % in scale move the distribution by 0.014, or 2.1 / sqrt(N); 20 % by 0.034.
        rejected = stats.kstest(released, family(scale=1.2 * grid.scale).cdf, method="asymp")
        assert rejected.pvalue < 1e-6


@pytest.mark.parametrize("bits", [0, 2, 12, 45])
def test_discrete_noise_is_rounded_to_the_coarser_grid(bits: int) -> None:
    for law, family in (("gaussian", stats.norm), ("laplace", stats.laplace)):
        steps = opendp_samples(law, N, bits)
        assert steps.dtype == np.int64
        width = 2 ** max(bits - 2, 0)
        edges = (np.arange(-12, 13) - 0.5) * width
        shift = 0.0 if width == 1 else 0.5
        counts = np.histogram(steps + shift, edges + shift)[0]
        expected = N * np.diff(family(scale=2.0**bits).cdf(edges))
        kept = expected > 5
        observed = np.append(counts[kept], N - counts[kept].sum())
        expected = np.append(expected[kept], N - expected[kept].sum())
        observed, expected = observed[expected > 0.5], expected[expected > 0.5]
        # Before 1.16 scipy wants sums to agree, which half a sample may be missing from.
        expected *= observed.sum() / expected.sum()
        assert stats.chisquare(observed, expected).pvalue > 1e-6
