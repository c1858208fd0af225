"""Mean of answers of several batches to one question, weighted by their precisions."""

from dataclasses import dataclass, replace

import numpy as np

from sktensor_dp.tensor.arrays import Floats


@dataclass(frozen=True, eq=False)
class BatchMean:
    """Mean of noisy answers of d coordinates to m questions, the columns."""

    # A coordinate of the answer of a batch of n samples has variance ``noise + sample_variance /
    # n``. The noise is known; `sample_variance` is estimated by the method of moments (DerSimonian
    # & Laird, 1986) from the distances of answers to the mean before them.

    value: Floats  # (d, m)
    noise_variance: Floats  # (m,): of a coordinate, by noise
    sampling: Floats  # (m,): of a coordinate, by sampling, over `sample_variance`
    # Sums over answers, each over its variance: mean squared distances less the noise, and what a
    # `sample_variance` of 1 would add to these.
    excess: float = 0.0
    expected: float = 0.0

    def __post_init__(self) -> None:
        columns = self.value.shape[1:]
        if (
            not columns == self.noise_variance.shape == self.sampling.shape
            or (self.sampling <= 0).any()
        ):
            raise ValueError(
                "value, noise_variance and sampling must be of as many columns, sampling > 0."
            )

    @classmethod
    def of(cls, value: Floats, noise_variance: float, n_samples: float) -> "BatchMean":
        """Answer (d, m) of one batch of `n_samples`, with noise of `noise_variance`."""
        ones = np.ones(value.shape[1])
        return cls(value, noise_variance * ones, ones / n_samples)

    @property
    def sample_variance(self) -> float:
        """Variance of a coordinate of one sample's answer; 0 where noise explains all."""
        return max(self.excess / self.expected, 0.0) if self.expected > 0 else 0.0

    @property
    def precision(self) -> float:
        """Inverse of the mean variance of columns by noise; without noise, by sampling."""
        noise = float(self.noise_variance.mean())
        return 1 / noise if noise > 0 else 1 / float(self.sampling.mean())

    def after(self, other: "BatchMean", noise_ratio: float = 1.0) -> "BatchMean":
        """Mean of this and of `other`, the answer of one more batch.

        The mean square of noise over a column is `noise_ratio` times `noise_variance`.
        """
        # Variances of columns before and in the new answer; if both are 0, those by sampling.
        before = self.noise_variance + self.sample_variance * self.sampling
        new = other.noise_variance + self.sample_variance * other.sampling
        if not (before + new).all():
            before, new = self.sampling, other.sampling
        rate = before / (before + new)  # weight of the new answer, by inverse variances
        # Terms of `sample_variance`, as for the fields `excess` and `expected`.
        distance = np.square(other.value - self.value).mean(axis=0) / noise_ratio
        excess = (distance - self.noise_variance - other.noise_variance) / (before + new)
        expected = (self.sampling + other.sampling) / (before + new)
        return BatchMean(
            value=self.value + rate * (other.value - self.value),
            noise_variance=(1 - rate) ** 2 * self.noise_variance + rate**2 * other.noise_variance,
            sampling=(1 - rate) ** 2 * self.sampling + rate**2 * other.sampling,
            excess=self.excess + float(excess.sum()),
            expected=self.expected + float(expected.sum()),
        )

    def column(self, index: int) -> "BatchMean":
        """Column `index` as the answer to one question."""
        only = slice(index, index + 1)
        value, noise = self.value[:, only], self.noise_variance[only]
        return replace(self, value=value, noise_variance=noise, sampling=self.sampling[only])

    def beside(self, other: "BatchMean") -> "BatchMean":
        """Answers to the questions of both in one array, with the `sample_variance` of this one."""
        pairs = ((self.value, other.value), (self.noise_variance, other.noise_variance),
                 (self.sampling, other.sampling))  # fmt: skip
        value, noise, sampling = (np.concatenate(pair, axis=-1) for pair in pairs)
        return replace(self, value=value, noise_variance=noise, sampling=sampling)
