"""What a forecast takes values to be like: by default, or as public knowledge has it."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

# What values are taken to be like, in widths of the bounds: the deviation of one component
# worth finding, and of a value about the model.
COMPONENT, RESIDUAL = 1 / 20, 1 / 5
# Deviation of the biases of a mode, and how many components there are if there are any.
BIAS, COMPONENTS = 1 / 10, 2
# Deviation of values, in widths of the bounds, and share of their variance in components. Ratings
# of books deviate by .25 of the width, of jokes by .26, of films by .28.
SPREAD, COMPONENT_SHARE = 1 / 4, 0.08


@dataclass(frozen=True)
class Assumed:
    """What values are taken to be like, in widths of the bounds."""

    deviation: float = SPREAD  # of values about their mean
    bias_deviation: float = BIAS  # of the biases of each mode
    component_share: float = COMPONENT_SHARE  # share of components in the variance of values

    @classmethod
    def given(
        cls,
        n_modes: int,
        width: float,
        deviation: float | None,
        bias_deviation: float | None,
        component_share: float | None,
    ) -> "Assumed":
        """Checked numbers in units of the data; biases are in proportion to a deviation."""
        spread = SPREAD * width if deviation is None else _checked("deviation", deviation, False)
        bias, share = BIAS / SPREAD * spread, COMPONENT_SHARE
        if bias_deviation is not None:
            bias = _checked("bias_deviation", bias_deviation, True)
        if component_share is not None:
            share = _checked("component_share", component_share, True)
        if n_modes * (bias / spread) ** 2 + share > 0.99:
            raise ValueError(
                "The 'bias_deviation' of all modes and the 'component_share' must leave at "
                f"least a hundredth of the variance. Got {bias!r} and {share!r} at a deviation "
                f"of {spread!r}."
            )
        return cls(spread / width, bias / width, share)

    def residual(self, n_modes: int) -> float:
        """Variance about mean and biases."""
        return self.deviation**2 - n_modes * self.bias_deviation**2


def _checked(name: str, number: Any, may_be_none: bool) -> float:
    real = isinstance(number, Real) and not isinstance(number, bool)
    if real and math.isfinite(number) and (number > 0 or (may_be_none and number == 0)):
        return float(number)
    least = "at least 0" if may_be_none else "above 0"
    raise ValueError(f"The {name!r} parameter must be a finite number {least}. Got {number!r}.")
