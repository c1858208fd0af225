"""What search, scorer and audit ask of an estimator, and the answers that most would give."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

# Arguments of ``fit``, those for a neighbour, and a statistic that is larger on that one.
Neighbours = tuple[tuple[Any, ...], tuple[Any, ...], Callable[[Any], float]]


class Hooks:
    """Answers of an estimator, by public numbers alone; a subclass says what is otherwise.

    But for what refuses rows, as a fit does before it is charged.

    Nothing else is asked: neither for a type nor for the name of a parameter. An object of
    this class answers for a model that is public.
    """

    # Whether units are rows, which may then be held out and scored one by one.
    _unit_is_row: bool = True
    # Whether a fit spends a pure epsilon, whatever delta it is given.
    _has_pure_noise: bool = False
    # Share of its delta that a fit sets aside for failures of its own.
    _delta_set_aside: float = 0.0
    # Whether a fit learns nothing from the data, so that it needs no budget.
    _releases_nothing: bool = False
    # Names of parameters that `_check_public` looks at, where they are not None.
    _may_clash: ClassVar[tuple[str, ...]] = ()

    def _check_public(self) -> None:
        """Refuse parameters that are wrong together, whatever the data is."""

    def _refuse_rows(self, X: Any, y: Any, *, grouped: bool, searched: Collection[str]) -> None:
        """Refuse data that no fit takes, before a search pays for fits; asked of a checked copy.

        `searched` names the parameters that candidates may change.
        """

    def _word_counter(self) -> Callable[[Any], Any] | None:
        """How many words each unit has, known or not; None where units are no texts."""
        return None

    def _unit_score(self) -> str | None:
        """Name of the score of a search that is given none, for what is no regressor."""
        return "log_likelihood" if hasattr(self, "score_samples") else None

    def _target_range(self) -> Sequence[float] | None:
        """Public (low, high) of targets and predictions, which bounds scores of these."""
        return None

    def _worst_case(self, n_units: int | None) -> Neighbours | None:
        """Neighbours of about so many units, as far apart as the releases allow."""
        return None
