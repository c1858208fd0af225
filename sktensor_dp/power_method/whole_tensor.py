"""Decompositions of a tensor that is itself the data."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from numpy.typing import ArrayLike

from sktensor_dp.estimator.base import PlannedFit, cautions_of_cap, check_arguments
from sktensor_dp.power_method.inputs import symmetric_tensor
from sktensor_dp.power_method.mixtures import ReleasedMixtures
from sktensor_dp.power_method.plan import MomentPlan
from sktensor_dp.power_method.recipe import (
    FittedComponents,
    MomentOptions,
    fit_by_sketch,
    fit_by_steps,
    learn,
)
from sktensor_dp.privacy.curators.samples import TensorCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.statistics.power_iterations import TensorChunk
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.oracle import tensor_oracle
from sktensor_dp.tensor.sketched import sketch_pays, tensor_pairs


class TensorFits(ReleasedMixtures):
    """Fits of one symmetric tensor, whose entries are the units of privacy."""

    def fit_tensor(self, T: ArrayLike, **unsupported: Any) -> Self:
        """Decompose a symmetric tensor whose entries are private.

        Parameters
        ----------
        T : array-like of shape (d, d, d)
            Symmetric tensor.
        **unsupported : object
            Refused: the units are entries, of which ``groups`` make no persons.

        Returns
        -------
        self : PrivateTensorPowerMethod
            The fitted model.

        Raises
        ------
        TypeError
            If an argument is not supported.
        ValueError
            If a parameter is wrong, or `T` is not a symmetric cube of finite numbers;
            no budget is spent.

        Notes
        -----
        Protects one entry of a given tensor (and its permutations), by Algorithm 3 of
        Wang & Anandkumar: not a person behind many entries.
        """
        check_arguments(self, unsupported, "fit_tensor")
        self._check_parameters()
        self._check_combination(("auto", "iteration"), "fit_tensor")
        if self._number_is_private:
            raise ValueError(
                f"fit_tensor of {type(self).__name__} needs neighbours='replace_one': a tensor has "
                "all of its entries, in a public shape. Nothing was charged."
            )
        if self.moment != "raw":
            raise ValueError(f"fit_tensor needs moment='raw', got {self.moment!r}.")
        return self._live(self._planned_tensor(symmetric_tensor(T, self._bound())))

    def _bound(self) -> float:
        """Largest change of an entry of a private tensor."""
        return 1.0 if self.data_norm is None else float(self.data_norm)

    def _planned_tensor(self, tensor: Floats) -> PlannedFit[TensorCurator]:
        """Plan to decompose a tensor whose entries are private."""
        n_features = len(tensor)
        plan, options = self._plan(1, n_features, "iteration"), self._options(n_features)
        n_steps = plan.n_components * (plan.max_iter + 1)
        recipe: Callable[[Any, MomentPlan, MomentOptions], FittedComponents] = fit_by_steps
        if math.isinf(self.epsilon) and sketch_pays(n_features, plan.n_components):
            # Without noise steps cost no privacy: those of the core may be followed by all.
            n_steps, recipe = n_steps + plan.max_iter + 3, fit_by_sketch
        releases = ReleasePlan.split(
            self.epsilon, self.delta, {"tensor_power_iterations": 1.0},
            {"tensor_power_iterations": n_steps},
        )  # fmt: skip
        bound = self._bound()
        neighbours = f"tensors that differ by {bound:g} in each of the six orders of one entry"
        return PlannedFit(
            TensorCurator, TensorChunk(tensor_oracle(tensor), pairs=tensor_pairs(tensor)), releases,
            partial(learn, recipe=recipe, plan=plan, options=options, n_iter=plan.max_iter),
            {"n_features_in_": n_features},
            {"known": bound, "unit": "entry", "neighbours": neighbours},
            cautions_of_cap(self.n_components, n_features),
        )  # fmt: skip
