"""What a fitted search shows of itself: parameters as any estimator, and what it released."""

from collections.abc import Callable, Mapping
from typing import Any

from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.tables import Table, as_html, as_text

HEAD = ("best candidate", "value")
FLATTERS = (
    "The score has noise, and is the largest of several, so it flatters. Score the model on other "
    "data for what it is worth."
)


class ShownSearch:
    """``repr`` and HTML of a search; released values join them once there are any."""

    best_params_: Mapping[str, Any]
    best_score_: float
    privacy_report_: PrivacyReport

    def _found(self) -> Table:
        """What the search released."""
        rows = [(name, " ".join(repr(value).split())) for name, value in self.best_params_.items()]
        rows.append(("score", f"{self.best_score_:.6g}"))
        return Table(self.privacy_report_.guarantee, HEAD, rows, (FLATTERS,), HEAD)

    def __repr__(self, *args: Any, **kwargs: Any) -> str:
        parameters = super().__repr__(*args, **kwargs)
        fitted = hasattr(self, "best_estimator_")
        return f"{parameters}\n{as_text(self._found())}" if fitted else parameters

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # Absent where scikit-learn is configured to show text.
        diagram: Callable[[], str] = super()._repr_html_  # type: ignore[misc]
        return lambda: diagram() + self._found_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._found_html()
        return bundle

    def _found_html(self) -> str:
        return as_html(self._found()) if hasattr(self, "best_estimator_") else ""
