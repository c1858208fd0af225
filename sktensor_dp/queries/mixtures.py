"""Statistics of samples in a mixture, for EM steps; and gains of mixtures over one another."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.data.samples import SampleChunk
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.data.units import sum_over_rows
from sktensor_dp.mixtures import defaults, gaussians
from sktensor_dp.mixtures.clipped_rows import ClippedRows, clipped_rows
from sktensor_dp.mixtures.clipping import Scales
from sktensor_dp.queries.laws import GAUSSIAN, LAPLACE, SPHERICAL
from sktensor_dp.queries.query import RADIUS, Bounded, Norms, Signed, check_array, check_number
from sktensor_dp.tensor.arrays import Floats, Integers, spans
from sktensor_dp.tensor.symmetric import coordinates_to_symmetric, symmetric_to_coordinates

ChunkRows = slice | Integers  # of a chunk
# Largest whitener times radius, and largest logarithm of weight times density: squares stay finite.
LARGEST_WHITENED, LARGEST_LOG = 1e50, 1e5
LIMITS = (1e-3, 1e6)


class Decoded(NamedTuple):
    """Statistics of k groups in q whitened coordinates; n_shared is k, or 1 if pooled."""

    weights: Floats  # (k,)
    shifts: Floats  # (k, q)
    sizes: Floats  # (n_shared,)
    shapes: Floats  # (n_shared, q, q)


@dataclass(frozen=True, eq=False)
class MixtureStatistics(Bounded):
    """Sum over units of weights, whitened shifts, sizes and shapes in each group of a mixture."""

    name, family = "mixture_statistics", "samples"
    description = "mean weight, shift and shape of samples in each group of a released mixture"
    laws = (GAUSSIAN, SPHERICAL)

    means: Floats  # (k, d)
    whiteners: Floats  # (k, q, d), or (1, q, d) that all groups share
    log_scales: Floats  # (k,): log of weight times density at the mean
    limit: float  # length that whitened rows are clipped to
    centre: float  # of squared lengths, in squared limits: 0 to 1
    scales: Scales  # squared scales of weight, shift, size and shape
    guard_radius: float  # length that rows are scaled down to before anything else
    shape_part: str = "full"  # released part of yy': all, its "diag", or if "spherical" its trace
    pooled: bool = False  # whether sizes and shapes are added up over groups
    # For rows with 1, ..., q - 1 observed columns: limit, and mean square of a coordinate.
    partial: Sequence[tuple[float, float]] = ()
    # One Gaussian, whose conditional means fill missing cells. With None each group fills them by
    # its own conditional moments.
    fill: gaussians.Gaussians | None = None
    reach: float = 1.0  # length, in limits, that whitened rows are clipped to in shifts; 1 or more
    lift: float = 0.0  # added to missing cells that `fill` fills
    # Of columns that are not Gaussian: slopes (k, q) of log-densities in whitened rows, and what is
    # in `log_scales` for each column (k, d), to be left out with missing cells.
    slopes: Floats | None = None
    offsets: Floats | None = None
    # Whether rows are replaced, after responsibilities, by signs: 1 of missing cells, -1 of others.
    counts_missing: bool = False

    def __post_init__(self) -> None:
        check_number("guard_radius", self.guard_radius, RADIUS)
        check_number("the limit", self.limit, LIMITS)
        check_number("the reach", self.reach, (1.0, LIMITS[1]))
        check_number("the centre", self.centre, (0.0, 1.0))
        check_array("the whiteners", self.whiteners, LARGEST_WHITENED / self.guard_radius)
        check_array("the means", self.means, self.guard_radius)
        check_array("log_scales", self.log_scales, LARGEST_LOG)
        for name, numbers in (("slopes", self.slopes), ("offsets", self.offsets)):
            if numbers is not None:
                check_array(f"the {name}", numbers, LARGEST_LOG)
        for scale in self.scales:
            check_number("a scale", scale, (0.0, 1.0))
        _, b, h, g = self.scales  # of weight, shift, size and shape, as in the proof
        if h + g > max(2 * b, b + 2 * self._shape_scale):
            raise ValueError("the scale of sizes is too large beside those of shifts and shapes.")
        if (self.scales.shape > 0) != (self.shape_part != "spherical" and self.width > 1):
            raise ValueError("the scale of shapes must be above 0 if they are released, else 0.")
        if self.fill is not None:
            check_array("what fills missing cells", self.fill.means, self.guard_radius)
            check_number("the lift", abs(self.lift), (0.0, self.guard_radius))
        if self.counts_missing and self.width != self.means.shape[1]:
            raise ValueError("signs of cells need as many whitened coordinates as columns.")
        conditioned = self.whiteners if self.fill is None else self.fill.whiteners
        if (self.partial or self.fill is not None) and not are_well_conditioned(conditioned):
            raise ValueError("the whiteners must be inverse Cholesky factors: cells may miss.")
        most_above_mean = self.limit**2 - self._mean * self.width
        for n_observed, (limit, mean) in enumerate(self.partial, start=1):
            # NaN fails every comparison.
            fits = 0 < limit <= self.limit and 0 <= mean <= self._mean
            if not (fits and limit**2 - mean * n_observed <= most_above_mean):
                raise ValueError("rows with missing cells must be clipped to less than whole ones.")

    @property
    def _mean(self) -> float:
        """Mean square of a whitened coordinate, which is subtracted from sizes."""
        return self.centre * self.limit**2 / self.width

    @property
    def width(self) -> int:
        """Number q of whitened coordinates."""
        return int(self.whiteners.shape[1])

    @property
    def l2_sensitivity(self) -> float:
        """Largest L2 distance of two contributions, in one group or in two."""
        # Squared distances of rows, by "One group" and "Two groups" of the proof.
        weight, shift, size, _ = self.scales
        shape = self._shape_scale  # G of the proof
        one_group = 4 * shift
        if shift < 2 * shape:
            one_group = 2 * shift + 2 * shape + shift**2 / (2 * shape)
        two_groups = 2 * self._largest_square
        if self.pooled:
            two_groups = 2 * weight + max(2 * shift + 2 * shape, shift + size + self.scales.shape)
        return NORM_SLACK * math.sqrt(max(one_group, two_groups))

    def _largest_norms(self) -> Norms:
        return Norms(l2=NORM_SLACK * math.sqrt(self._largest_square))

    @property
    def _largest_square(self) -> float:
        """Largest squared norm of a row's statistic in one group, at length 0 or at the limit."""
        weight, shift, size, shape = self.scales
        at_limit = shift + shape + size * (1 - self.centre) ** 2
        return weight + max(size * self.centre**2, at_limit)

    @property
    def _shape_scale(self) -> float:
        """Scale of shapes times q / (q - 1): |yy' - |y|^2 I / q|^2 is |y|^4 (q - 1) / q."""
        return self.scales.shape * self.width / (self.width - 1) if self.width > 1 else 0.0

    def total(self, chunk: SampleChunk) -> Floats:
        """Weights (k,), shifts (k, q), sizes and any shapes of each group or all; as one vector."""
        weights = chunk.units.mean_weights
        sums = sum_over_rows(chunk.X.shape[0], lambda part: self._part(chunk, part, weights))
        # Orthonormal coordinates of the sums, each part times the root of its squared scale. Sizes
        # are traces of yy' less their centre, shapes are yy' without its trace.
        scales, q, square = self.scales, self.width, self.limit**2
        counts, shifts = sums[:, 0], sums[:, 1 : 1 + q]
        squares = sums[:, 1 + q :].reshape(-1, q, q)
        sizes = np.trace(squares, axis1=1, axis2=2) / square - self.centre * counts
        shift_scale = scales.shift**0.5 / (self.limit * self.reach)
        coordinates = [scales.weight**0.5 * counts, shift_scale * shifts.ravel()]
        if self.pooled:
            squares, sizes = squares.sum(axis=0, keepdims=True), sizes.sum(keepdims=True)
        if self.shape_part == "spherical":
            return np.concatenate([*coordinates, scales.size**0.5 * sizes])
        mean_square = np.eye(q) / q  # of norm q^(-1/2)
        traces = np.trace(squares, axis1=1, axis2=2)[:, None, None]
        shapes = (self._shape_scale**0.5 / square) * (squares - traces * mean_square)
        shapes += (scales.size * q) ** 0.5 * sizes[:, None, None] * mean_square
        if self.shape_part == "diag":
            return np.concatenate([*coordinates, np.diagonal(shapes, axis1=1, axis2=2).ravel()])
        return np.concatenate([*coordinates, *map(symmetric_to_coordinates, shapes)])

    def _part(self, chunk: SampleChunk, part: slice, weights: Floats) -> Floats:
        """Sums (k, 1 + q + q * q) over a slice of rows: shares, and clipped y and yy'."""
        k, q = len(self.means), self.width
        sums = np.zeros((k, 1 + q + q * q))
        for rows, frame in self._rows_of(chunk, part):
            clipped = self.clipped_rows(chunk, rows, frame)
            if self.counts_missing:
                clipped = self._signs(chunk, rows, clipped)
            of_block = clipped.sums(self.reach, weights[rows])
            sums += of_block
            if frame.filled is not None and not self.counts_missing:
                sums[:, 1 + q :] += (of_block[:, :1, None] * frame.filled).reshape(k, -1)
        return sums

    def _rows_of(self, chunk: SampleChunk, part: slice) -> Iterator[tuple[ChunkRows, "RowFrame"]]:
        """Yield blocks of rows of the slice `part`: of the same observed cells, or filled ones."""
        observed = chunk.observed
        whole = RowFrame(self.whiteners, self.log_scales, self.limit)
        if observed is not None and self.fill is None:
            for pattern, places in gaussians.patterns_of(observed[part]):
                frame = whole if pattern.all() else self._frame_of(pattern)
                for at in spans(len(places), 3 * self.means.size):
                    yield part.start + places[at], frame
            return
        for rows in chunk.blocks(3 * len(self.means) * self.width, part):
            yield rows, whole

    def _frame_of(self, pattern: NDArray[np.bool_]) -> "RowFrame":
        """Whiteners and clip for rows whose observed columns are those in `pattern`."""
        factors = np.asarray(np.linalg.inv(self.whiteners), np.float64)
        offsets = np.zeros_like(self.means) if self.offsets is None else self.offsets
        seen = gaussians.observed_part(factors, self.log_scales, pattern, offsets)
        limit, mean = self.partial[int(pattern.sum()) - 1] if pattern.any() else (LIMITS[0], 0.0)
        # The mean yy' of complete rows, less that of the clipped part that is seen.
        filled = self._mean * np.eye(self.width) - mean * seen.projectors
        return RowFrame(seen.whiteners, seen.log_scales, limit, filled)

    def clipped_rows(self, chunk: SampleChunk, rows: ChunkRows, frame: "RowFrame") -> ClippedRows:
        """Clipped whitened rows, and their responsibilities."""
        X, observed = scaled_rows(chunk, rows, self.guard_radius), observed_of(chunk, rows)
        if self.fill is not None and observed is not None:
            X = np.where(observed, X, self.fill.filled(X, observed) + self.lift)
        whitened = gaussians.whitened_rows(X, self.means, frame.whiteners)
        slopes = np.zeros(whitened.shape[1:]) if self.slopes is None else self.slopes
        return clipped_rows(whitened, frame.log_scales, frame.limit, slopes)

    def _signs(self, chunk: SampleChunk, rows: ChunkRows, whitened: ClippedRows) -> ClippedRows:
        """Signs of cells, of the length of the limit, in the place of whitened rows."""
        observed, size = observed_of(chunk, rows), self.limit / math.sqrt(self.width)
        signs = np.full(whitened.clipped.shape[1:], -size)
        if observed is not None:
            signs[~observed] = size
        return whitened._replace(
            clipped=np.broadcast_to(signs, whitened.clipped.shape),
            lengths=np.full_like(whitened.lengths, self.limit),
        )

    def decoded(self, coordinates: Floats) -> Decoded:
        """Invert the scales of :meth:`total`."""
        k, q, scales = len(self.means), self.width, self.scales
        weights, shifts, of_shapes = np.split(coordinates, [k, k + k * q])
        weights, shifts = weights / scales.weight**0.5, shifts.reshape(k, q)
        shifts = shifts * self.limit * self.reach / scales.shift**0.5
        square, n_shared = self.limit**2, 1 if self.pooled else k
        shapes = np.zeros((n_shared, q, q))
        if self.shape_part == "spherical":
            return Decoded(weights, shifts, of_shapes * square / scales.size**0.5, shapes)
        rows, diagonal = of_shapes.reshape(n_shared, -1), self.shape_part == "diag"
        matrices = np.array(
            [np.diag(row) if diagonal else coordinates_to_symmetric(row, q, 2) for row in rows]
        )
        traces = np.trace(matrices, axis1=1, axis2=2)
        if q > 1:
            shapes = matrices - (traces / q)[:, None, None] * np.eye(q)
            # Divide by the root of `_shape_scale`, scales.shape / (1 - 1 / q).
            shapes *= square * ((1 - 1 / q) / scales.shape) ** 0.5
        return Decoded(weights, shifts, traces / q**0.5 * square / scales.size**0.5, shapes)


@dataclass(frozen=True, eq=False)
class MixtureGains(Signed):
    """Sum over units of the log-density that each mixture gains over the one before."""

    name, family = "mixture_gains", "samples"
    description = "mean log-density that released mixtures gain over one another"
    laws = (GAUSSIAN, LAPLACE)

    mixtures: Sequence[gaussians.Gaussians]  # two or more
    guard_radius: float  # length that rows are scaled down to

    def __post_init__(self) -> None:
        check_number("guard_radius", self.guard_radius, RADIUS)
        for mixture in self.mixtures:
            check_array("the whiteners", mixture.whiteners, LARGEST_WHITENED / self.guard_radius)
            check_array("the means", mixture.means, self.guard_radius)
            check_array("log_scales", mixture.log_scales, LARGEST_LOG)
            check_array("the slopes", mixture.slopes, LARGEST_LOG)

    @property
    def n_gains(self) -> int:
        """Number of gains."""
        return len(self.mixtures) - 1

    def _largest_norms(self) -> Norms:
        largest = defaults.MOST_GAIN * NORM_SLACK
        return Norms(l2=largest, l1=largest * math.sqrt(self.n_gains))

    def total(self, chunk: SampleChunk) -> Floats:
        """Sum (n_gains,) of the rows' gains, each row's clipped to norm `MOST_GAIN`."""
        weights = chunk.units.mean_weights
        return sum_over_rows(chunk.X.shape[0], lambda part: self._part(chunk, part, weights))

    def _part(self, chunk: SampleChunk, part: slice, weights: Floats) -> Floats:
        """Sum of clipped gains over a slice of rows, times the rows' `weights`; (n_gains,)."""
        sums = np.zeros(self.n_gains)
        for rows in chunk.blocks(3 * sum(mixture.means.size for mixture in self.mixtures), part):
            X, observed = scaled_rows(chunk, rows, self.guard_radius), observed_of(chunk, rows)
            joint = (mixture.log_joint(X, observed) for mixture in self.mixtures)
            log_densities = np.transpose([*map(gaussians.log_density, joint)])  # (n, n_mixtures)
            gains = np.diff(log_densities)
            norms = np.sqrt(np.einsum("nm,nm->n", gains, gains))
            factors = defaults.MOST_GAIN / np.maximum(norms, defaults.MOST_GAIN)
            sums += (factors * weights[rows]) @ gains
        return sums


def are_well_conditioned(whiteners: Floats) -> bool:
    """True if whiteners are inverses of Cholesky factors, not too badly conditioned."""
    # Largest condition of a whitener for each column; products for rows with missing cells have its
    # square.
    largest_condition = 1e6
    try:
        factors = np.asarray(np.linalg.inv(whiteners))
    except np.linalg.LinAlgError:
        return False
    conditions = np.linalg.norm(whiteners, axis=(1, 2)) * np.linalg.norm(factors, axis=(1, 2))
    positive = np.diagonal(factors, axis1=1, axis2=2) > 0
    return bool(positive.all() and (conditions <= largest_condition * whiteners.shape[1]).all())


@dataclass(frozen=True, eq=False)
class RowFrame:
    """Whiteners and clip for rows with the same observed cells, or for rows that were filled."""

    whiteners: Floats  # (k, q, d), or (1, q, d)
    log_scales: Floats  # (k,)
    limit: float
    filled: Floats | None = None  # (k, q, q), or (1, q, q): added to yy' of each row


def scaled_rows(chunk: SampleChunk, rows: ChunkRows, radius: float) -> Any:
    """Rows of a chunk, those longer than `radius` scaled down to it; missing cells are 0."""
    X = chunk.X[rows]
    scales = chunk.scales(radius)[rows]
    if sp.issparse(X):  # no cell is missing
        return sp.csr_matrix(sp.diags(scales) @ X)
    return X * scales[:, None]


def observed_of(chunk: SampleChunk, rows: ChunkRows) -> NDArray[np.bool_] | None:
    """Mask of the observed cells of some rows; None where none is missing."""
    return None if chunk.observed is None else chunk.observed[rows]
