"""What a fit leaves on an estimator, and the one place where it is written."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar


class FittedStateMixin:
    """Fitted state: attributes whose names end in ``_``, and those of ``_hidden_state``."""

    _hidden_state: ClassVar[frozenset[str]] = frozenset()

    def _publish(self, attributes: Mapping[str, Any]) -> None:
        """Replace all that earlier fits left behind, in one step that cannot fail half way."""
        strange = [name for name in attributes if not self._is_fitted_state(name)]
        assert not strange, f"{strange} are no names of fitted state"
        fitted = self._fitted_state()
        kept = {name: value for name, value in vars(self).items() if name not in fitted}
        self.__dict__ = {**kept, **attributes}

    def _is_fitted_state(self, name: str) -> bool:
        public = name.endswith("_") and not name.startswith("_")
        return public or name in self._hidden_state

    def _fitted_state(self) -> dict[str, Any]:
        """All that the last fit left behind."""
        return {name: v for name, v in vars(self).items() if self._is_fitted_state(name)}

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """What fails in this block after a fit undoes the fit."""
        before = self._fitted_state()
        try:
            yield
        except BaseException:
            self._publish(before)
            raise
