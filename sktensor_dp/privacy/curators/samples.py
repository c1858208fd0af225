"""Curators of samples and of private tensors: releases in the terms of the power method."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.privacy.curator import DataCurator, Noisy
from sktensor_dp.queries.counts import NormHistogram
from sktensor_dp.queries.mixtures import MixtureGains, MixtureStatistics
from sktensor_dp.queries.query import SIZES
from sktensor_dp.queries.samples import (
    LiftedBall,
    PowerIterations,
    ProjectedThirdMoments,
    SampleNorm,
    SecondMoments,
    TensorPowerIterations,
    ThirdMomentHistogram,
    ThirdMoments,
)
from sktensor_dp.tensor.symmetric import coordinates_to_symmetric, n_unique

Floats = NDArray[np.float64]

# Range searched for a limit on projected third moments, over the largest they can be.
LEAST_LIMIT, N_BINS = 1e-8, 96


@dataclass(frozen=True, eq=False)
class NoisyThirdMoments:
    """Released third moments in a subspace."""

    tensor: Floats  # mean of y (x) y (x) y, y the projected samples
    residual: Floats  # mean of y times the squared distance from the subspace; 0 if not asked for
    sigma: float  # of the noise of the tensor along a coordinate


class SampleCurator(DataCurator):
    """A :class:`DataCurator` of samples; the :class:`LiftedBall` they are scaled into is known."""

    _known: LiftedBall

    @property
    def norm(self) -> float:
        """Largest norm of a sample with its constant; public."""
        return self._known.norm

    @property
    def radius(self) -> float:
        """Largest norm of a sample; public."""
        return self._known.radius

    @property
    def offset(self) -> float:
        """Constant appended to samples, or 0; public."""
        return self._known.offset

    def choose_norm(self) -> bool:
        """Release a histogram of norms and scale the ball to the one that most samples are within;
        return True if the histogram shows anything above its noise.
        """
        edges = np.append(0.0, SIZES)
        query = NormHistogram(SampleNorm(), edges)
        _, norm, seen = self.noisy_range("norm_histogram", query, edges)
        self._known = LiftedBall(norm * self.radius, norm * self.offset)
        return seen

    def second_moments(self) -> Noisy:
        """Mean second moment."""
        noisy = self.noisy("second_moments", SecondMoments(self._known))
        return Noisy(noisy.value, self._deviation(noisy.sigma, n_unique(len(noisy.value), 2)))

    def projected_third_moments(
        self, basis: Floats, residual_weight: float, quantile: float
    ) -> NoisyThirdMoments:
        """Mean third moments in the span of `basis`, each clipped at a noisy quantile of norms."""
        seen = basis, self._known, residual_weight
        limit = math.inf
        if not self._noiseless:
            largest = self._known.norm**3 * float(np.linalg.norm(basis, 2)) ** 3
            edges = largest * np.geomspace(LEAST_LIMIT, 1.0, N_BINS + 1)
            histogram = ThirdMomentHistogram(*seen, edges=edges)
            limit = self.noisy_quantile("third_moment_histogram", histogram, edges, quantile)
        query = ProjectedThirdMoments(*seen, limit)
        return self._third_moments("projected_third_moments", query)

    def third_moments(self, basis: Floats, residual_weight: float) -> NoisyThirdMoments:
        """Mean third moment with noise in the whole space, seen in an orthonormal frame."""
        query = ThirdMoments(basis, self._known, residual_weight)
        return self._third_moments("third_moments", query)

    def power_iterations(self, starts: Floats) -> Noisy:
        """Answers ``T(I, u, u)`` of the mean third moment, for every column u."""
        # Outside the span of the starts the noise has the deviation given over sqrt(3).
        query = PowerIterations(starts, self._known.radius)
        noisy = self.noisy("power_iterations", query)
        return Noisy(query.answers(noisy.value), self._deviation(noisy.sigma, noisy.value.size))

    def mixture_statistics(self, query: MixtureStatistics) -> Noisy:
        """Mean statistics of an EM step."""
        noisy = self.noisy("mixture_statistics", query)
        return Noisy(noisy.value, self._deviation(noisy.sigma, noisy.value.size))

    def mixture_gains(self, query: MixtureGains) -> Noisy:
        """Mean log-density that mixtures gain over another."""
        return self.noisy("mixture_gains", query)

    def _third_moments(self, name: str, query: ProjectedThirdMoments) -> NoisyThirdMoments:
        noisy, size = self.noisy(name, query), query.basis.shape[1]
        dimension = query.ambient_dimension or noisy.value.size
        unique = n_unique(size, 3)
        tensor = coordinates_to_symmetric(noisy.value[:unique], size, 3)
        residual = np.zeros(size)
        if query.residual_weight > 0:
            residual = noisy.value[unique:] / query.residual_weight
        return NoisyThirdMoments(tensor, residual, self._deviation(noisy.sigma, dimension))


class TensorCurator(DataCurator):
    """A :class:`DataCurator` of one tensor of private entries, whose largest change is known."""

    _known: float

    def power_iterations(self, starts: Floats) -> Noisy:
        """Answers ``T(I, u, u)`` for every column u."""
        noisy = self.noisy("tensor_power_iterations", TensorPowerIterations(starts, self._known))
        return Noisy(noisy.value, self._deviation(noisy.sigma, noisy.value.size))
