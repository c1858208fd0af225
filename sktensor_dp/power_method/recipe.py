"""Recipes of a tensor power method: order of the releases, and components from them."""

import math
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import check_random_state

from sktensor_dp.estimator.base import FitResult
from sktensor_dp.estimator.data_norm import chosen_ball, with_norm
from sktensor_dp.power_method import defaults
from sktensor_dp.power_method.fitted import (
    FittedComponents,
    attributes_of,
    components_of,
    warnings_of_noise,
)
from sktensor_dp.power_method.plan import RESOLVED, MomentPlan, noise_norm
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
from sktensor_dp.tensor.power_method import OnlinePowerMethod, orthogonal_decomposition
from sktensor_dp.tensor.symmetric import (
    coordinates_to_symmetric,
    multilinear,
    n_unique,
    symmetric_product,
)
from sktensor_dp.tensor.whitening import Whitener, noisy_whitener

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
# Largest T(u, u, u) of normal noise of unit variance in many dimensions, over the root of their
# number (Auffinger, Ben Arous, Cerny, 2013).
LARGEST_OF_NOISE = 1.66
# Rounding errors relative to the largest square.
ROUNDING = 1e-12


def fit_moments(ask: Session, plan: MomentPlan) -> FitResult:
    """Components of samples: choose the norm if it is "auto", ask for moments, decompose them."""
    ball, seen = LiftedBall(plan.radius, plan.offset), True
    if plan.chooses_norm:
        ball, seen = chosen_ball(ask, ball)
    if plan.is_mixture:
        found = fit_spherical_gaussians(ask, ball, plan)
    elif plan.perturbation == "iteration":
        found = fit_by_steps(ask, plan, PowerIterations, ball.radius)
    else:
        found = fit_raw_moments(ask, ball, plan)
    warned = warnings_of_noise(found, plan.n_components, plan.releases.epsilon)
    if found.fill > FULL:
        warned = (UserWarning(ALL_CLIPPED), *warned)
    fitted = FitResult(attributes_of(found, plan), warned)
    return with_norm(fitted, ball, seen=seen) if plan.chooses_norm else fitted


def fit_raw_moments(ask: Session, ball: LiftedBall, plan: MomentPlan) -> FittedComponents:
    """Components of ``E[x (x) x (x) x]``, unit vectors, from released moments."""
    k, n_features, sampling = plan.n_components, plan.n_features, 0.0
    if plan.perturbation == "moment_tensor" and not plan.whiten:
        # Nothing is released that sampling noise could be estimated from.
        white, in_second = Whitener(np.eye(n_features), np.ones(n_features)), k
    else:
        second = ask(SecondMoments(ball))
        edge = noise_norm(second.sigma, n_features)
        found = noisy_whitener(second.value, k, edge=edge, largest=ball.norm**2)
        k, in_second = found.n_components, found.n_resolved
        white = found if plan.whiten else Whitener(found.basis, np.ones(k))
        sampling = sampling_deviation(white, second.value, ask.n_units)
    third = release_third_moments(ask, ball, plan, white, 0.0)
    components = white.unwhiten(decomposed(third.tensor, k, plan))
    components /= np.linalg.norm(components, axis=1, keepdims=True)
    whitened = components @ white.matrix
    # Least-squares weights of the cubes of the components in the released tensor.
    products = np.einsum(
        "abc,ia,ib,ic->i", third.tensor, whitened, whitened, whitened, optimize=True
    )
    gram = (whitened @ whitened.T) ** 3
    weights = np.maximum(np.linalg.lstsq(gram, products, rcond=1e-12)[0], 0.0)
    most = max(RESOLVED, LARGEST_OF_NOISE * math.sqrt(white.n_components))
    values = weights * np.linalg.norm(whitened, axis=1) ** 3
    stands = values > most * math.hypot(third.sigma, sampling)
    order = np.argsort(-weights, kind="stable")
    order = order[stands[order]] if stands.any() else order[:1]
    return FittedComponents(components[order], weights[order], min(in_second, int(stands.sum())))


def decomposed(tensor: Floats, k: int, plan: MomentPlan) -> Floats:
    """Decompose a released tensor into `k` orthonormal components, the rows of the result."""
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
        answers = power_step(ask, step(method.columns_asked(), bound))
        # Steps read the same data, so no later answer is better.
        method.tell(answers.value, answers.sigma, may_wait=False)
    return components_of(method)


def power_step(ask: Session, query: PowerIterations | TensorPowerIterations) -> Answer:
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
    ask: Session, ball: LiftedBall, plan: MomentPlan, white: Whitener, rho: float
) -> ReleasedThirdMoments:
    """Release the whitened third moment, and that of residuals if `rho` is above 0."""
    if plan.perturbation == "moment_tensor":
        third = third_moments(ask, ThirdMoments(white.basis, ball, rho))
        tensor = multilinear(third.tensor, white.transform)
        # Noise of a cube grows with the mean of its squared scales, to the power 3 / 2.
        growth = float(np.mean(white.scale**-2.0)) ** 1.5
        return ReleasedThirdMoments(tensor, third.residual / white.scale, third.sigma * growth)
    return projected_third_moments(ask, ball, white.matrix, rho)


def projected_third_moments(
    ask: Session, ball: LiftedBall, basis: Floats, rho: float
) -> ReleasedThirdMoments:
    """Mean third moments in the span of `basis`, each clipped at a noisy quantile of norms."""
    limit = math.inf
    if not ask.is_exact:
        # Range searched for a limit, relative to the largest norm possible, in 96 bins.
        largest = ball.norm**3 * float(np.linalg.norm(basis, 2)) ** 3
        edges = largest * np.geomspace(1e-8, 1.0, 97)
        histogram = ask(ThirdMomentHistogram(basis, ball, rho, edges=edges))
        limit = histogram.edge_at(edges, 1 - defaults.CLIPPED)
    return third_moments(ask, ProjectedThirdMoments(basis, ball, rho, limit))


def third_moments(ask: Session, query: ProjectedThirdMoments) -> ReleasedThirdMoments:
    """Release third moments in the span of a query's basis, and those of residuals."""
    answer, size = ask(query), query.basis.shape[1]
    unique = n_unique(size, 3)
    tensor = coordinates_to_symmetric(answer.value[:unique], size, 3)
    residual = np.zeros(size)
    if query.residual_weight > 0:
        residual = answer.value[unique:] / query.residual_weight
    return ReleasedThirdMoments(tensor, residual, answer.sigma)


def fit_spherical_gaussians(ask: Session, ball: LiftedBall, plan: MomentPlan) -> FittedComponents:
    """Fit spherical Gaussians to released moments (Hsu & Kakade, 2013)."""
    # The second moment has the variance that groups share, and beyond it the span of their means.
    second, offset, radius = ask(SecondMoments(ball)), ball.offset, ball.radius
    size = len(second.value)
    # Mean square of x, less two deviations of its noise, over the largest possible one.
    square = float(np.trace(second.value[:-1, :-1])) - 2 * second.sigma * math.sqrt(size)
    fill = square / radius**2
    mean, covariance = mean_and_covariance(second, offset)
    spectrum = np.asarray(np.linalg.eigvalsh(covariance), np.float64)
    variance = common_variance(spectrum, plan.n_components, second.sigma, radius, ask.n_units)
    spherical = np.append(np.ones(size - 1), 0.0)  # the constant has no variance
    corrected = second.value - variance * np.diag(spherical)
    corrected[-1, -1] = offset**2
    # Sampling perturbs a second moment as noise does.
    edge = noise_norm(math.hypot(second.sigma, variance * math.sqrt(2 / ask.n_units)), size)
    white = noisy_whitener(corrected, plan.n_components, edge=edge, largest=ball.norm**2)
    by_common_variance = white.matrix.T @ np.append(mean, offset) * variance
    third, by_variance = third_moments_of_means(
        ask, ball, plan, white, spherical, variance, by_common_variance
    )
    tensor = third.tensor
    # Whitened components lead to Gaussians; those that stand out of noise and sampling are kept.
    vectors = decomposed(tensor, white.n_components, plan)
    scaled = white.unwhiten(vectors)  # rows sqrt(w) (mu, offset)
    roots = scaled[:, -1] / offset
    means = scaled[:, :-1] / np.maximum(roots, LEAST_ROOT)[:, None]
    variances = vectors @ by_variance / np.maximum(roots, LEAST_ROOT)
    variances = np.clip(variances, LEAST_VARIANCE * variance, radius**2 / (size - 1))
    values = np.einsum("abc,ia,ib,ic->i", tensor, vectors, vectors, vectors, optimize=True)
    noise = math.hypot(third.sigma, sampling_deviation(white, second.value, ask.n_units))
    stands = values > RESOLVED * noise
    stands &= (roots > LEAST_ROOT) & (np.linalg.norm(means, axis=1) <= radius)
    if white.n_components == 1 or not stands.any():
        # One Gaussian, by the released first and second moments.
        mean *= min(1.0, radius / max(float(np.linalg.norm(mean)), 1e-300))
        of_one = common_variance(spectrum, 1, second.sigma, radius, 1)
        n_resolved = min(white.n_resolved, plan.n_components, 1)
        return FittedComponents(mean[None], np.ones(1), n_resolved, np.array([of_one]), fill)
    order = np.argsort(-roots, kind="stable")
    order = order[stands[order]]
    weights = roots[order] ** 2 / (roots[order] ** 2).sum()
    return FittedComponents(means[order], weights, len(order), variances[order], fill)


def third_moments_of_means(
    ask: Session, ball: LiftedBall, plan: MomentPlan, white: Whitener, spherical: Floats,
    variance: float, by_common_variance: Floats,
) -> tuple[ReleasedThirdMoments, Floats]:  # fmt: skip
    """Whitened third moment whose components are the means, and the sum of variances times means.

    Residuals show the variances; what these add to the third moment is subtracted.
    """
    # Expected squared distance from the span, over the variance.
    freedom = max(float(spherical.sum() - (white.basis**2 * spherical[:, None]).sum()), 1e-3)
    rho = (3 / (len(spherical) - white.n_components)) ** 0.5
    if plan.perturbation == "whitened_tensor":
        rho = 0.5 * white.n_components / (freedom * variance)
    third = release_third_moments(ask, ball, plan, white, rho)
    by_variance = shrunk_residual(third, by_common_variance, rho, freedom)
    identity = white.matrix.T @ (spherical[:, None] * white.matrix)
    tensor = third.tensor - symmetric_product(identity, by_variance)
    return replace(third, tensor=tensor), by_variance


def mean_and_covariance(second: Answer, offset: float) -> tuple[Floats, Floats]:
    """Mean and covariance of samples x, by a released second moment of (x, offset)."""
    mean, mean_sigma = second.value[-1, :-1] / offset, second.sigma / np.sqrt(2) / offset
    # A product of noisy means has the variance of their noise on its diagonal.
    noise_variance = mean_sigma**2 * np.eye(len(mean))
    covariance: Floats = second.value[:-1, :-1] - np.outer(mean, mean) + noise_variance
    return mean, covariance


def common_variance(
    spectrum: Floats, n_components: int, sigma: float, radius: float, n_units: int
) -> float:
    """Mean of the least eigenvalues whose differences noise and sampling explain."""
    n_least = len(spectrum)
    fewest = max(n_least - n_components + 1, 1)
    while n_least > fewest:
        variance = max(float(spectrum[:n_least].mean()), 0.0)
        sampling = variance * math.sqrt(2 / n_units)
        if spectrum[n_least - 1] <= variance + noise_norm(
            math.hypot(sigma, sampling), len(spectrum)
        ):
            break
        n_least -= 1
    # Noise alone would show a variance of this size: smaller ones are raised to it.
    noise = sigma / math.sqrt(n_least)
    variance = max(float(spectrum[:n_least].mean()), noise, ROUNDING * radius**2)
    return min(variance, radius**2 / len(spectrum))


def shrunk_residual(
    third: ReleasedThirdMoments, equal: Floats, rho: float, freedom: float
) -> Floats:
    """Posterior mean (k,) of variances times means, shrunk towards the common variance `equal`."""
    mean_square = float(equal @ equal) / len(equal)
    noise_variance = (third.sigma / (rho * freedom)) ** 2
    kept = mean_square / (mean_square + noise_variance) if mean_square > 0 else 1.0
    return equal + kept * (third.residual / freedom - equal)


def sampling_deviation(white: Whitener, second: Floats, n_units: int) -> float:
    """Deviation of a coordinate of a whitened third moment by sampling normal data."""
    k = white.n_components
    square = float(np.trace(white.matrix.T @ second @ white.matrix))
    # E|z|^6 for z normal in n dimensions is n (n + 2) (n + 4); `square` stands for n.
    sixth = square * (square + 2) * (square + 4)
    return math.sqrt(max(sixth, 0.0) / (n_units * n_unique(k, 3)))
