"""Recipes of a tensor power method: order of the releases, and components from them."""

import math
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import check_random_state

from sktensor_dp.estimator.base import FitResult, warnings_of_more
from sktensor_dp.estimator.data_norm import release_ball
from sktensor_dp.exceptions import DoubtfulParameterWarning
from sktensor_dp.power_method import defaults
from sktensor_dp.power_method.fitted import (
    FittedComponents,
    attributes_of,
    components_of,
    warnings_of_noise,
)
from sktensor_dp.power_method.plan import RESOLVED, MomentPlan
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.samples import (
    LiftedBall,
    PowerIterations,
    ProjectedThirdMoments,
    SecondMoments,
    TensorPowerIterations,
    ThirdMomentHistogram,
    ThirdMoments,
)
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.largest_of_noise import edge_of_noise, largest_over_edge
from sktensor_dp.tensor.power_method import OnlinePowerMethod, orthogonal_decomposition
from sktensor_dp.tensor.symmetric import (
    coordinates_to_symmetric,
    multilinear,
    n_unique,
    symmetric_product,
)
from sktensor_dp.tensor.whitening import NoisyWhitener, Whitener, noisy_whitener

# Least value of the constant coordinate of a component, and least variance relative to the common
# one.
LEAST_ROOT, LEAST_VARIANCE = 1e-3, 0.05
# If the mean square is at least this fraction of the largest possible one, nearly all samples are
# clipped.
FULL = 0.97
ALL_CLIPPED = (
    "Nearly all samples are as long as data_norm or longer, by the released second moment. A "
    "larger data_norm, or 'auto', would clip fewer; if they are far from zero, subtract a public "
    "centre."
)
SEEN = "groups can be seen in the released second moments"
STRETCHED = "A stretched group counts as several here."
# Largest T(u, u, u) of normal noise of unit variance in many dimensions, over the root of their
# number (Auffinger, Ben Arous, Cerny, 2013).
LARGEST_OF_NOISE = 1.66
# Rounding errors relative to the largest square.
ROUNDING = 1e-12


def fit_moments(ask: Session, plan: MomentPlan) -> FitResult:
    """Components of samples: choose the norm if it is "auto", ask for moments, decompose them."""
    ball, unseen = LiftedBall(plan.radius, plan.offset), tuple[Warning, ...]()
    if plan.chooses_norm:
        ball, unseen = release_ball(ask, ball)
    if plan.is_mixture:
        components = fit_spherical_gaussians(ask, ball, plan)
    elif plan.perturbation == "iteration":
        components = fit_by_steps(ask, plan, PowerIterations, ball.radius)
    else:
        components = fit_raw_moments(ask, ball, plan)
    warned = warnings_of_noise(components, plan.n_components, plan.releases.epsilon)
    if components.fill > FULL:
        warned = (DoubtfulParameterWarning(ALL_CLIPPED), *warned)
    more = warnings_of_more(components.n_seen or 0, plan.n_components, SEEN, STRETCHED)
    attributes = attributes_of(components, plan)
    if plan.chooses_norm:
        attributes["data_norm_"] = ball.radius
    return FitResult(attributes, (*unseen, *warned, *more), notes=tuple(map(str, more)))


def fit_entries(ask: Session, plan: MomentPlan, bound: float) -> FitResult:
    """Components of a tensor, by power steps: one entry of it may change by `bound`."""
    components = fit_by_steps(ask, plan, TensorPowerIterations, bound)
    warned = warnings_of_noise(components, plan.n_components, plan.releases.epsilon)
    return FitResult(attributes_of(components, plan), warned)


def fit_raw_moments(ask: Session, ball: LiftedBall, plan: MomentPlan) -> FittedComponents:
    """Components of ``E[x (x) x (x) x]``, unit vectors, from released moments."""
    k, n_features, sampling = plan.n_components, plan.n_features, 0.0
    if plan.perturbation == "moment_tensor" and not plan.whiten:
        # Nothing is released that sampling noise could be estimated from.
        white, n_resolved = Whitener(np.eye(n_features), np.ones(n_features)), k
    else:
        second = ask(SecondMoments(ball))
        edge = edge_of_noise(second.sigma, n_features)
        by_second = noisy_whitener(second.value, k, edge=edge, largest=ball.norm**2)
        k, n_resolved = by_second.n_components, by_second.n_resolved
        white = by_second if plan.whiten else Whitener(by_second.basis, np.ones(k))
        sampling = sampling_deviation(by_second, second.value, ask.n_units)
        if not plan.whiten:  # cubes of coordinates that are not whitened
            sampling *= float(np.mean(by_second.scale**2)) ** 1.5
    third = release_third_moments(ask, ball, plan, white, residual_weight=0.0)
    components = white.unwhiten(orthonormal_components(third.tensor, k, plan))
    components /= np.linalg.norm(components, axis=1, keepdims=True)
    whitened = components @ white.matrix
    # Least-squares weights w of whitened components c: T(c_i, c_i, c_i) = sum_j w_j (c_i' c_j)^3.
    gram = (whitened @ whitened.T) ** 3
    values = cubes_along(third.tensor, whitened)
    weights = np.maximum(np.linalg.lstsq(gram, values, rcond=1e-12)[0], 0.0)
    # A component alone has T(u, u, u) = w |c|^3 in its direction u.
    peaks = weights * np.linalg.norm(whitened, axis=1) ** 3
    most_of_noise = max(RESOLVED, LARGEST_OF_NOISE * math.sqrt(white.n_components))
    stands_out = peaks > most_of_noise * math.hypot(third.sigma, sampling)
    order = np.argsort(-weights, kind="stable")
    order = order[stands_out[order]] if stands_out.any() else order[:1]
    return FittedComponents(
        components[order], weights[order], n_resolved=min(n_resolved, int(stands_out.sum()))
    )


def cubes_along(T: Floats, vectors: Floats) -> Floats:
    """``T(v, v, v)`` for each row v of `vectors`."""
    return np.asarray(np.einsum("abc,ia,ib,ic->i", T, vectors, vectors, vectors, optimize=True))


def orthonormal_components(tensor: Floats, k: int, plan: MomentPlan) -> Floats:
    """Decompose a released tensor into `k` orthonormal components, the rows of the result."""
    # Deflation is one start of simultaneous iterations.
    return orthogonal_decomposition(
        tensor, k, n_restarts=plan.n_restarts, max_iter=plan.max_iter,
        random_state=check_random_state(plan.random_state),
    )[1]  # fmt: skip


def fit_by_steps(
    ask: Session,
    plan: MomentPlan,
    step: type[PowerIterations | TensorPowerIterations],
    bound: float,
) -> FittedComponents:
    """Power method with noise in every step on the same data, of norms within `bound`."""
    method = new_method(plan)
    while not method.is_complete:
        answers = release_power_step(ask, step(method.columns_asked(), bound))
        # Steps read the same data, so no later answer is better.
        method.tell(answers.value, answers.sigma, may_wait=False)
    return components_of(method)


def release_power_step(ask: Session, query: PowerIterations | TensorPowerIterations) -> Answer:
    """Answer whose value is ``T(I, u, u)`` for every column u of the starts of a query."""
    # Its `sigma` stays that of the released coordinates, which is right within the span of the
    # starts. Outside, noise on samples is smaller by sqrt(3): where answers are averaged,
    # `OnlinePowerMethod` corrects for it.
    released = ask(query)
    return replace(released, value=query.decoded(released.value))


def new_method(plan: MomentPlan) -> OnlinePowerMethod:
    """Start a power method, before its first step."""
    return OnlinePowerMethod.begin(
        plan.n_features, plan.n_components, n_restarts=plan.n_restarts, max_iter=plan.max_iter,
        random_state=check_random_state(plan.random_state),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ReleasedThirdMoments:
    """Released third moments in a subspace."""

    tensor: Floats  # mean of y (x) y (x) y, y the projected samples
    residual: Floats  # mean of y times the squared distance from the subspace; 0 if not asked for
    sigma: float  # of the noise of the tensor along a coordinate


def release_third_moments(
    ask: Session, ball: LiftedBall, plan: MomentPlan, white: Whitener, residual_weight: float
) -> ReleasedThirdMoments:
    """Release the whitened third moment, and that of residuals if `residual_weight` is above 0."""
    if plan.perturbation == "whitened_tensor":
        return release_clipped_third_moments(ask, ball, white.matrix, residual_weight)
    third = release_in_basis(ask, ThirdMoments(white.basis, ball, residual_weight))
    tensor = multilinear(third.tensor, white.transform)
    # Noise of a cube grows with the mean of its squared scales, to the power 3 / 2.
    growth = float(np.mean(white.scale**-2.0)) ** 1.5
    return ReleasedThirdMoments(tensor, third.residual / white.scale, third.sigma * growth)


def release_clipped_third_moments(
    ask: Session, ball: LiftedBall, basis: Floats, residual_weight: float
) -> ReleasedThirdMoments:
    """Release mean third moments in the span of `basis`, clipped at a noisy quantile of norms."""
    limit = math.inf
    if not ask.is_exact:
        # Range searched for a limit, relative to the largest norm possible, in 96 bins.
        largest = ball.norm**3 * float(np.linalg.norm(basis, 2)) ** 3
        edges = largest * np.geomspace(1e-8, 1.0, 97)
        histogram = ask(ThirdMomentHistogram(basis, ball, residual_weight, edges=edges))
        limit = histogram.edge_at(edges, 1 - defaults.CLIPPED)
    return release_in_basis(ask, ProjectedThirdMoments(basis, ball, residual_weight, limit))


def release_in_basis(ask: Session, query: ProjectedThirdMoments) -> ReleasedThirdMoments:
    """Release third moments in the span of a query's basis, and those of residuals."""
    answer, size = ask(query), query.basis.shape[1]
    n_cubes = n_unique(size, 3)
    tensor = coordinates_to_symmetric(answer.value[:n_cubes], size, 3)
    residual = np.zeros(size)
    if query.residual_weight > 0:
        residual = answer.value[n_cubes:] / query.residual_weight
    return ReleasedThirdMoments(tensor, residual, answer.sigma)


def fit_spherical_gaussians(ask: Session, ball: LiftedBall, plan: MomentPlan) -> FittedComponents:
    """Fit spherical Gaussians to released moments (Hsu & Kakade, 2013)."""
    second, radius = ask(SecondMoments(ball)), ball.radius
    mean, covariance = mean_and_covariance(second, ball.offset)
    spectrum = np.asarray(np.linalg.eigvalsh(covariance), np.float64)
    variance = common_variance(spectrum, plan.n_components, second.sigma, radius, ask.n_units)
    n_seen = n_groups_seen(second, spectrum, ball, ask.n_units)
    white = whitener_of_means(second, variance, ball, plan, ask.n_units)
    third, by_variance = release_third_moments_of_means(
        ask, ball, plan, white, variance, np.append(mean, ball.offset)
    )
    vectors = orthonormal_components(third.tensor, white.n_components, plan)
    roots, means, variances = unwhitened_gaussians(vectors, by_variance, white, variance, ball)
    noise = math.hypot(third.sigma, sampling_deviation(white, second.value, ask.n_units))
    stands_out = cubes_along(third.tensor, vectors) > RESOLVED * noise
    stands_out &= (roots > LEAST_ROOT) & (np.linalg.norm(means, axis=1) <= radius)
    # Mean square of x, less two deviations of its noise, over the largest possible one.
    square = float(np.trace(second.value[:-1, :-1]))
    fill = (square - 2 * second.sigma * math.sqrt(len(second.value))) / radius**2
    if white.n_components == 1 or not stands_out.any():
        # One Gaussian, by the released first and second moments.
        mean *= min(1.0, radius / max(float(np.linalg.norm(mean)), 1e-300))
        of_one = common_variance(
            spectrum, n_components=1, sigma=second.sigma, radius=radius, n_units=ask.n_units
        )
        return FittedComponents(
            mean[None], np.ones(1), n_resolved=min(white.n_resolved, plan.n_components, 1),
            variances=np.array([of_one]), n_seen=n_seen, fill=fill,
        )  # fmt: skip
    order = np.argsort(-roots, kind="stable")
    order = order[stands_out[order]]
    weights = roots[order] ** 2 / (roots[order] ** 2).sum()
    return FittedComponents(
        means[order], weights, n_resolved=len(order), variances=variances[order],
        n_seen=n_seen, fill=fill,
    )  # fmt: skip


def spherical_diagonal(size: int) -> Floats:
    """Diagonal of the covariance of (x, constant), x of unit variance: the constant has none."""
    return np.append(np.ones(size - 1), 0.0)


def whitener_of_means(
    second: Answer, variance: float, ball: LiftedBall, plan: MomentPlan, n_units: int
) -> NoisyWhitener:
    """Whitener of ``sum_i w_i (mu_i, offset) (mu_i, offset)'``."""
    moment, edge = moment_of_means(second, variance, ball, n_units)
    return noisy_whitener(moment, plan.n_components, edge=edge, largest=ball.norm**2)


def moment_of_means(
    second: Answer, variance: float, ball: LiftedBall, n_units: int
) -> tuple[Floats, float]:
    """Second moment of (mu_i, offset), that of samples minus variance, and its noise edge."""
    size = len(second.value)
    corrected = second.value - variance * np.diag(spherical_diagonal(size))
    corrected[-1, -1] = ball.offset**2
    sigma = math.hypot(second.sigma, sampling_of_variance(variance, n_units))
    return corrected, edge_of_noise(sigma, size)


def n_groups_seen(second: Answer, spectrum: Floats, ball: LiftedBall, n_units: int) -> int:
    """Number of groups above the quantile of noise and sampling, also beyond those asked for."""
    variance = common_variance(spectrum, len(spectrum), second.sigma, ball.radius, n_units)
    moment, edge = moment_of_means(second, variance, ball, n_units)
    return int((np.linalg.eigvalsh(moment) > edge * largest_over_edge(len(moment))).sum())


def release_third_moments_of_means(
    ask: Session, ball: LiftedBall, plan: MomentPlan, white: Whitener, variance: float, mean: Floats
) -> tuple[ReleasedThirdMoments, Floats]:
    """Whitened third moment whose components are the means, and ``sum_i w_i v_i m_i``.

    `w`, `v` and `m` are the groups' weights, variances and whitened means; `mean` is that of all
    (x, offset). Residuals show ``sum_i w_i v_i m_i``, and what it adds to the third moment is
    subtracted.
    """
    spherical = spherical_diagonal(len(white.basis))
    # Expected squared distance from the span, over the variance: the trace of S less that within.
    freedom = max(float(spherical.sum() - (white.basis**2 * spherical[:, None]).sum()), 1e-3)
    n_outside = len(spherical) - white.n_components  # dimensions outside the span
    residual_weight = (3 / n_outside) ** 0.5  # as the proof of `ThirdMoments` has it
    if plan.perturbation == "whitened_tensor":
        # Residuals times this are half as long as y y y: |y|^2 is k, s freedom * variance, about.
        residual_weight = 0.5 * white.n_components / (freedom * variance)
    third = release_third_moments(ask, ball, plan, white, residual_weight)
    # The residual is `freedom` times sum_i w_i v_i m_i, with noise; that sum is shrunk to what it
    # is for equal variances.
    if_equal = white.matrix.T @ mean * variance
    mean_square = float(if_equal @ if_equal) / len(if_equal)
    noise_variance = (third.sigma / (residual_weight * freedom)) ** 2
    kept_fraction = mean_square / (mean_square + noise_variance) if mean_square > 0 else 1.0
    by_variance = if_equal + kept_fraction * (third.residual / freedom - if_equal)
    # E[y y y] = sum_i w_i m_i m_i m_i + the symmetric product of W' S W and sum_i w_i v_i m_i, S
    # the spherical covariance.
    identity = white.matrix.T @ (spherical[:, None] * white.matrix)
    tensor = third.tensor - symmetric_product(identity, by_variance)
    return replace(third, tensor=tensor), by_variance


def unwhitened_gaussians(
    vectors: Floats, by_variance: Floats, white: Whitener, variance: float, ball: LiftedBall
) -> tuple[Floats, Floats, Floats]:
    """Roots of the weights (k,), means (k, d) and variances (k,) by whitened components."""
    # A component is sqrt(w) times a whitened mean m. Its product with `by_variance`, sum_i w_i v_i
    # m_i, is sqrt(w) v; unwhitened, it is sqrt(w) (mu, offset). `variance` is common to all.
    scaled = white.unwhiten(vectors)
    roots = scaled[:, -1] / ball.offset
    means = scaled[:, :-1] / np.maximum(roots, LEAST_ROOT)[:, None]
    variances = vectors @ by_variance / np.maximum(roots, LEAST_ROOT)
    largest_variance = ball.radius**2 / means.shape[1]
    return roots, means, np.clip(variances, LEAST_VARIANCE * variance, largest_variance)


def mean_and_covariance(second: Answer, offset: float) -> tuple[Floats, Floats]:
    """Mean and covariance of samples x, by a released second moment of (x, offset)."""
    # An entry off the diagonal has a deviation of sigma / sqrt(2): it stands in two places.
    mean, mean_sigma = second.value[-1, :-1] / offset, second.sigma / np.sqrt(2) / offset
    # A product of noisy means has the variance of their noise on its diagonal.
    noise_variance = mean_sigma**2 * np.eye(len(mean))
    covariance: Floats = second.value[:-1, :-1] - np.outer(mean, mean) + noise_variance
    return mean, covariance


def common_variance(
    spectrum: Floats, n_components: int, sigma: float, radius: float, n_units: int
) -> float:
    """Mean of the least eigenvalues whose differences noise and sampling explain."""
    # Means of k groups about their mean span k - 1 directions; all others have the variance alone.
    n_least = size = len(spectrum)
    fewest = max(size - n_components + 1, 1)
    while n_least > fewest:
        variance = max(float(spectrum[:n_least].mean()), 0.0)
        edge = edge_of_noise(math.hypot(sigma, sampling_of_variance(variance, n_units)), size)
        if spectrum[n_least - 1] <= variance + edge:
            break
        n_least -= 1
    # Noise alone would show a variance of this size: smaller ones are raised to it.
    noise = sigma / math.sqrt(n_least)
    variance = max(float(spectrum[:n_least].mean()), noise, ROUNDING * radius**2)
    return min(variance, radius**2 / size)


def sampling_of_variance(variance: float, n_units: int) -> float:
    """Deviation of a mean square of normal numbers: sampling perturbs moments as noise does."""
    return variance * math.sqrt(2 / n_units)


def sampling_deviation(white: Whitener, second: Floats, n_units: int) -> float:
    """Deviation of a coordinate of a whitened third moment by sampling normal data."""
    k = white.n_components
    square = float(np.trace(white.matrix.T @ second @ white.matrix))
    # E|z|^6 for z normal in n dimensions is n (n + 2) (n + 4); `square` stands for n.
    sixth = square * (square + 2) * (square + 4)
    return math.sqrt(max(sixth, 0.0) / (n_units * n_unique(k, 3)))
