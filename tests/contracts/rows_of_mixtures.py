"""Queries on samples in a mixture, with random public parameters, and extreme neighbours."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from contracts.rows_of_counts import of_groups
from contracts.rows_of_samples import SAMPLES, D, changed_sample, samples
from contracts.sensitivities import Case, Floats, Rng

from sktensor_dp.data.samples import IncompleteChunk, IncompleteChunks, as_incomplete
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.mixtures.clipping import Scales, clipping_at
from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.mixtures.start import SPHERE_SCALES
from sktensor_dp.queries.mixtures import MixtureGains, MixtureStatistics


def rows(rng: Rng, query: Any) -> Floats:
    """Ordinary and adversarial samples, and some about each group and at its clip."""
    of = query if hasattr(query, "means") else query.mixtures[-1]
    means, whiteners = of.means, of.whiteners
    limit = getattr(query, "limit", 3.0)
    found = [*samples(rng, query), *means]
    own = np.resize(whiteners, (len(means), *whiteners.shape[1:]))
    for mean, whitener in zip(means, own, strict=True):
        for end in np.eye(len(whitener)):
            step = np.linalg.pinv(whitener) @ (end * limit * rng.choice([0.7, 1.0, 1.01, 3.0]))
            found += [mean + step, mean - step]
    gaps = np.array(found)
    gaps[rng.random(gaps.shape) < rng.choice([0.2, 0.6, 1.0])] = np.nan
    return np.concatenate([found, gaps])


def changed(rng: Rng, row: Floats) -> Floats:
    """Step at random; or let a cell be missing, or not."""
    row, place = changed_sample(rng, np.nan_to_num(row)), rng.random(D) < rng.choice([0.0, 0.2])
    return np.where(place, np.nan, row)


def with_gaps(X: Any) -> Any:
    """Samples in which NaN is a missing cell, which sparse ones cannot have."""
    return as_incomplete(X.toarray() if sp.issparse(X) and np.isnan(X.data).any() else X)


def mixture(rng: Rng, k: int, radius: float) -> Gaussians:
    factors = np.tril(rng.standard_normal((k, D, D))) + 2 * np.eye(D)
    factors *= radius * 10 ** rng.uniform(-2, 0, (k, 1, 1))
    means = rng.standard_normal((k, D))
    means *= radius * rng.random((k, 1)) / np.linalg.norm(means, axis=1, keepdims=True)
    return Gaussians(rng.dirichlet(np.ones(k)), means, factors @ factors.swapaxes(1, 2))


def statistics(shape: str, pooled: bool) -> Any:
    def build(rng: Rng, _: Any) -> MixtureStatistics:
        radius = float(10 ** rng.uniform(-3, 3))
        model = mixture(rng, int(rng.integers(1, 5)), radius)
        whiteners = model.whiteners[:1] if pooled else model.whiteners
        if shape == "spherical":
            whiteners = whiteners[:, : rng.integers(1, D + 1)]
        quantile = rng.uniform(0.5, 0.99)
        clip = clipping_at(whiteners.shape[1], quantile)
        weight, shift, spread = rng.dirichlet(np.ones(3)) * [1, 1, shape != "spherical"]
        scales = Scales(weight, shift, (shift + spread) / 2, spread)
        partial, fill, lift = clips_below(clip.width, quantile), None, 0.0
        if clip.width < D or rng.random() < 0.3:
            partial, fill, lift = (), mixture(rng, 1, radius), radius * rng.uniform(-0.5, 0.5)
        slopes = rng.standard_normal((len(model.means), clip.width)) * rng.integers(2)
        return MixtureStatistics(
            model.means, whiteners, model.log_scales, clip.limit, clip.centre, scales, radius,
            shape, pooled, partial, fill, rng.choice([1.0, rng.uniform(1, 4)]), lift,
            slopes, rng.standard_normal(model.means.shape),
            counts_missing=bool(clip.width == D and rng.random() < 0.2),
        )  # fmt: skip

    return build


def clips_below(width: int, quantile: float) -> tuple[tuple[float, float], ...]:
    clips = (clipping_at(n_seen, quantile) for n_seen in range(1, width))
    return tuple((clip.limit, clip.mean) for clip in clips)


def apart(scales: Scales, shape: str = "full", pooled: bool = False) -> MixtureStatistics:
    """Two groups so far apart that no sample is between them."""
    means = 100 * np.eye(2, D)
    whiteners = np.eye(D)[None] if pooled else np.array([np.eye(D), 2 * np.eye(D)])
    # Rows with gaps are clipped to half: their squares are centred on less.
    partial = tuple((1.0, 0.1) for _ in range(D - 1))
    return MixtureStatistics(
        means, whiteners, np.zeros(2), 2.0, 0.3, scales, 1000.0, shape, pooled, partial
    )


FULL = clipping_at(D, 0.9).scales(D * (D + 1) // 2 - 1)
AXES = np.eye(D)


def case(kind: str, build: Any, query: Any, one: Floats, other: Floats, **more: Any) -> Case:
    release = "mixture_gains" if isinstance(query, MixtureGains) else "mixture_statistics"
    slack = {"slack": NORM_SLACK, "most": 1 - 0.9 * (NORM_SLACK - 1), "found": 0.8, **more}
    data = replace(
        SAMPLES, pool=rows, changed_row=changed, validated=with_gaps, chunk=IncompleteChunk,
        chunks=IncompleteChunks,
    )  # fmt: skip
    return Case(
        release, kind, data, build, lambda _: (query, None, one[None], other[None]), **slack
    )


def of_statistics(kind: str, query: Any, one: Floats, other: Floats) -> Case:
    build = statistics(query.shape_part, query.pooled)
    return case(kind, build, query, query.means[0] + one, query.means[1] + other)


def in_one_group(kind: str, scales: Scales, cosine: float) -> Case:
    """Two samples at the clip of one group, at an angle."""
    query, sine = apart(scales), (1 - cosine**2) ** 0.5
    mean = query.means[0]
    turned = cosine * AXES[0] + sine * AXES[1]
    return case(kind, statistics("full", False), query, mean + 2 * AXES[0], mean + 2 * turned)


def gains(rng: Rng, _: Any) -> MixtureGains:
    radius = float(10 ** rng.uniform(-3, 3))
    found = [mixture(rng, int(rng.integers(1, 5)), radius) for _ in range(rng.integers(2, 5))]
    return MixtureGains(found, radius)


def ball(place: float) -> Gaussians:
    return Gaussians(np.ones(1), place * AXES[:1], np.eye(D)[None])


NARROW = Scales(0.01, 0.4, 0.2, 0.5)
ROW_CASES = [
    of_statistics("two groups", apart(FULL), 2 * AXES[0], AXES[1]),
    of_statistics("diagonals", apart(FULL, "diag"), 2 * AXES[0], AXES[1]),
    of_statistics("sizes", apart(Scales(0.5, 0.4, 0.2, 0.0), "spherical"), 2 * AXES[0], AXES[1]),
    of_statistics("shapes of all groups", apart(FULL, "full", True), 2 * AXES[0], 2 * AXES[1]),
    of_statistics("sizes of all groups", apart(SPHERE_SCALES, "spherical", True),
                  2 * AXES[0], -2 * AXES[0]),
    in_one_group("opposite samples of one group", Scales(0.05, 0.8, 0.3, 0.1), -1.0),
    in_one_group("samples of one group", NARROW, -NARROW.shift / (2 * NARROW.shape * D / (D - 1))),
    case("mixtures", gains, MixtureGains([*map(ball, (-15.0, -5.0, 5.0, 15.0))], 1e7),
         9e6 * AXES[0], -9e6 * AXES[0]),
]  # fmt: skip
CASES = [*ROW_CASES, *of_groups(ROW_CASES)]
