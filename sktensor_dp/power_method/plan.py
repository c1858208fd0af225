"""What a tensor power method will release, from public numbers only, and the fits that follow."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sktensor_dp.estimator.base import PlannedFit, cautions_of_cap
from sktensor_dp.estimator.grouped_rows import batch_budget, check_same_unit
from sktensor_dp.power_method.gaussian_mixture import fit_gaussian_mixture
from sktensor_dp.power_method.parameters import BY_STEPS, LARGEST_SECOND_MOMENT, ComponentParameters
from sktensor_dp.power_method.recipe import (
    FittedComponents,
    MomentPlan,
    fit_by_sketch,
    fit_by_steps,
    fit_raw_moments,
    learn,
    single_topics,
)
from sktensor_dp.power_method.stream import ComponentStream, learn_batch
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.curators.documents import DocumentCurator
from sktensor_dp.privacy.curators.samples import SampleCurator, TensorCurator
from sktensor_dp.privacy.plan import ReleasePlan, check_feasible
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.queries.counts import CountChunks
from sktensor_dp.queries.samples import LiftedBall, SampleChunks, TensorChunk
from sktensor_dp.spectral_topics.plan import TopicPlan, plan_topics
from sktensor_dp.spectral_topics.recipe import fit_topics
from sktensor_dp.spectral_topics.released import TopicOptions
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.oracle import tensor_oracle
from sktensor_dp.tensor.power_method import sketch_pays, tensor_pairs

# Constant coordinate of a mixture's samples, in radii: small enough to cost little
# noise, large enough that scales are read off it.
OFFSET = 0.5
# Shares of mu^2. The second moment decides the subspace and the scale of all components.
SHARES = {"second_moments": 0.5, "third_moment_histogram": 0.02, "third": 0.48}
# Starts polished to this many iterations once a tensor is released; it costs nothing.
AFTER_RELEASE = 100


class ComponentPlans(ComponentParameters):
    """The plans that parameters make, and the fits that follow them."""

    def _plan(
        self,
        n_samples: int,
        n_features: int,
        perturbation: str,
        budget: tuple[float, float] | None = None,
        *,
        to_fit: bool = False,
    ) -> MomentPlan:
        """Choose releases and split the budget; what is to be fitted has to fit into memory."""
        self._check_width(n_features)
        epsilon, delta = budget or (self.epsilon, self.delta)
        exact, k, max_iter = math.isinf(epsilon), min(self.n_components, n_features), self.max_iter
        if perturbation == "auto":
            streams = self.moment == "raw" and n_features > LARGEST_SECOND_MOMENT
            perturbation = "stream" if streams else "whitened_tensor"
        if max_iter is None:
            by_steps = perturbation in BY_STEPS
            max_iter = power_iterations_needed(n_features) if by_steps else AFTER_RELEASE
        shares = _shares(perturbation, self.whiten, exact=exact)
        uses = {"power_iterations": k * (max_iter + 1)} if perturbation == "iteration" else {}
        numbers, advice = _size(
            n_features, perturbation, k, self.n_restarts, "second_moments" in shares
        )
        plan = MomentPlan(
            n_components=k, n_features=n_features, perturbation=perturbation, whiten=self.whiten,
            n_restarts=self.n_restarts, max_iter=max_iter, random_state=self.random_state,
            offset=OFFSET * self._radius() if self.moment == "gaussian_mixture" else 0.0,
            quantile=_quantile(n_samples, epsilon, delta),
            releases=ReleasePlan.split(epsilon, delta, shares, uses),
        )  # fmt: skip
        if to_fit:
            check_feasible(
                numbers,
                f"A fit of {n_features} features by perturbation={perturbation!r}",
                f"Fit fewer features, {advice}.",
            )
        return plan

    def _n_batches(self, n_features: int) -> int:
        """Batches of a stream after which all components are found, and some left to polish."""
        plan = self._plan(1, n_features, "stream")
        return (plan.n_components + 1) * (plan.max_iter + 1)

    def _topic_plan(self, n_samples: int, n_features: int, apart: bool | None = None) -> TopicPlan:
        moment = self.perturbation == "moment_tensor"
        return plan_topics(
            n_samples, n_features, self.n_components, epsilon=self.epsilon, delta=self.delta,
            perturbation="moment_tensor" if moment else "whitened_tensor", n_refinements=None,
            limits={}, apart=apart,
        )  # fmt: skip

    def _radius(self) -> float:
        assert self.data_norm is not None
        return float(self.data_norm)

    def _fit_of(
        self, chunks: CountChunks | SampleChunks, columns: Mapping[str, Any], n_units: int
    ) -> PlannedFit[Any]:
        """Plan a fit of so many units, which are read as often as needed."""
        of = self._planned_topics if isinstance(chunks, CountChunks) else self._planned_samples
        return of(n_units, chunks, columns)  # type: ignore[arg-type]

    def _planned_topics(
        self, n_units: int, chunks: CountChunks, columns: Mapping[str, Any]
    ) -> PlannedFit[DocumentCurator]:
        plan = self._topic_plan(n_units, chunks.n_features, chunks.apart)
        n_iter = self.max_iter or AFTER_RELEASE
        options = TopicOptions(0.0, "isotropic", self.random_state, self.n_restarts, n_iter)
        leave = partial(single_topics, plan=plan, n_iter=n_iter)
        return PlannedFit(
            DocumentCurator, chunks, plan.releases,
            partial(fit_topics, plan=plan, options=options, leave=leave),
            columns, {"unit": "document", "known": {}},
            cautions_of_cap(self.n_components, chunks.n_features),
        )  # fmt: skip

    def _planned_samples(
        self, n_units: int, chunks: SampleChunks, columns: Mapping[str, Any]
    ) -> PlannedFit[SampleCurator]:
        radius = self._radius()
        plan = self._plan(n_units, chunks.n_features, self.perturbation, to_fit=True)
        recipe = fit_by_steps if plan.perturbation == "iteration" else fit_raw_moments
        if self.moment == "gaussian_mixture":
            recipe = fit_gaussian_mixture
        return PlannedFit(
            SampleCurator, chunks, plan.releases, partial(learn, recipe=recipe, plan=plan),
            columns, {"known": LiftedBall(radius, plan.offset)},
            cautions_of_cap(self.n_components, chunks.n_features),
        )  # fmt: skip

    def _planned_batch(
        self,
        chunks: SampleChunks,
        stream: ComponentStream | None,
        columns: Mapping[str, Any],
        earlier: PrivacyReport | None,
        n_batches: int,
    ) -> PlannedFit[SampleCurator]:
        """Plan one step on a batch, at the budget of each of those that a unit may be in."""
        if earlier is not None:
            check_same_unit(earlier, chunks.grouped, self.neighbours)
        step = partial(self._step_of, chunks, stream, columns, n_batches)
        return replace(self._planned_by_number(chunks, step), earlier=earlier)

    def _step_of(
        self,
        chunks: SampleChunks,
        stream: ComponentStream | None,
        columns: Mapping[str, Any],
        n_batches: int,
        n_units: int,
    ) -> PlannedFit[SampleCurator]:
        """Plan one step on a batch of so many units."""
        radius, budget = self._radius(), batch_budget(self.epsilon, self.delta, n_batches)
        plan = self._plan(n_units, chunks.n_features, "stream", budget, to_fit=True)
        plan = replace(plan, releases=plan.releases.repeated(n_batches))
        charged = (self.epsilon, self.delta, radius)
        return PlannedFit(
            SampleCurator, chunks, plan.releases,
            lambda curator: learn_batch(curator, plan, stream, charged), columns,
            {"known": LiftedBall(radius), "ticket": None if stream is None else stream.ticket},
            cautions_of_cap(self.n_components, chunks.n_features) if stream is None else (),
        )  # fmt: skip

    def _planned_tensor(self, tensor: Floats, bound: float) -> PlannedFit[TensorCurator]:
        """Plan to decompose a tensor whose entries are private."""
        plan = self._plan(1, len(tensor), "iteration")
        recipe: Callable[[Any, MomentPlan], FittedComponents] = fit_by_steps
        n_steps = plan.n_components * (plan.max_iter + 1)
        if math.isinf(self.epsilon) and sketch_pays(len(tensor), plan.n_components):
            # Without noise steps cost no privacy: those of the core may be followed by all.
            n_steps, recipe = n_steps + plan.max_iter + 3, fit_by_sketch
        name = "tensor_power_iterations"
        releases = ReleasePlan.split(self.epsilon, self.delta, {name: 1.0}, {name: n_steps})
        neighbours = f"tensors that differ by {bound:g} in each of the six orders of one entry"
        return PlannedFit(
            TensorCurator, TensorChunk(tensor_oracle(tensor), pairs=tensor_pairs(tensor)), releases,
            partial(learn, recipe=recipe, plan=plan), {"n_features_in_": len(tensor)},
            {"known": bound, "unit": "entry", "neighbours": neighbours},
            cautions_of_cap(self.n_components, len(tensor)),
        )  # fmt: skip


def _shares(perturbation: str, whiten: bool, *, exact: bool) -> dict[str, float]:
    """What each release gets of the budget, relative to the others."""
    if perturbation in BY_STEPS:
        return {"power_iterations": 1.0}
    whitened, shares = perturbation == "whitened_tensor", {}
    if whiten or whitened:
        shares["second_moments"] = SHARES["second_moments"]
    if whitened and not exact:
        shares["third_moment_histogram"] = SHARES["third_moment_histogram"]
    return {**shares, "projected_third_moments" if whitened else "third_moments": SHARES["third"]}


def _size(
    n_features: int, perturbation: str, n_components: int, n_restarts: int, with_pairs: bool
) -> tuple[float, str]:
    """Numbers that moments, or steps on them, hold at once, and how to need fewer."""
    d = float(n_features)
    if perturbation in BY_STEPS:
        return d * (n_components + n_restarts), "or less n_restarts"
    # Without a second moment there is no subspace: the third one is of all features.
    numbers = d**2 if with_pairs else d**3
    return numbers, "or by perturbation='stream', which needs memory in proportion to them"


def power_iterations_needed(n_features: int) -> int:
    """Iterations from a random start: a logarithm of the dimension, and a few to converge."""
    return math.ceil(math.log2(max(n_features, 2))) + 4


def _quantile(n_samples: int, epsilon: float, delta: float) -> float:
    """Clip few samples, and fewer the less noise there is: clipping is a bias."""
    needed = gaussian_mu(epsilon, delta) if delta > 0 else epsilon / 4
    return 1 - min(0.05, 500 / (n_samples * needed))


def is_stream(estimator: Any, source: Any, n_samples: int | None) -> bool:
    """Whether each chunk of a source is a batch of a stream."""
    apart = hasattr(source, "sum")
    if estimator.perturbation == "stream" and apart:
        raise TypeError(
            "source must be an iterable of batches for perturbation='stream', got a "
            f"{type(source).__name__}, whose parts add up elsewhere."
        )
    if estimator.perturbation != "auto":
        return bool(estimator.perturbation == "stream")
    public = n_samples is None and estimator.neighbours == "replace_one"
    return public and not apart and estimator.moment == "raw"
