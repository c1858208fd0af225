"""Decompositions of a tensor that is itself the data."""

from typing import Any, Self

from numpy.typing import ArrayLike

from sktensor_dp.estimator.base import check_arguments
from sktensor_dp.power_method.inputs import symmetric_tensor
from sktensor_dp.power_method.plan import ComponentPlans


class TensorFits(ComponentPlans):
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
        bound = 1.0 if self.data_norm is None else self._radius()
        return self._live(self._planned_tensor(symmetric_tensor(T, bound), bound))
