"""What all private estimators share: parameters of the guarantee, charging, the report."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np

from sktensor_dp.estimator.parameters import Constraint, InstanceOf, Number, OneOf, check_parameters
from sktensor_dp.model_files.saving import ModelFileMixin
from sktensor_dp.privacy.accountant import BudgetAccountant, active_accountant
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.statistics.query import Chunks

__all__ = ["PrivateEstimatorMixin"]

NONE = OneOf(None)

Curator = TypeVar("Curator", bound=DataCurator)


class PrivateEstimatorMixin(ModelFileMixin):
    """Parameters ``epsilon, delta, accountant, random_state, verbose`` and the report.

    A subclass lists its other parameters in ``_own_constraints`` and names
    its unit of privacy in ``_unit``.
    """

    _unit: ClassVar[str] = "sample"
    _privacy_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {
        "epsilon": [Number(0, math.inf, closed="right")],
        "delta": [Number(0, 1, closed="left")],
        "accountant": [InstanceOf(BudgetAccountant), NONE],
        "random_state": [
            Number(0, 2**32 - 1, integer=True),
            InstanceOf(np.random.RandomState),
            NONE,
        ],
        "verbose": [Number(0, math.inf, integer=True), InstanceOf(bool)],
    }
    _own_constraints: ClassVar[Mapping[str, Iterable[Constraint]]] = {}

    privacy_report_: PrivacyReport

    def _check_parameters(self) -> None:
        check_parameters(self, {**self._own_constraints, **self._privacy_constraints})

    def _payer(self) -> BudgetAccountant | None:
        """Accountant to charge: the parameter, or that of the surrounding block."""
        given: BudgetAccountant | None = self.accountant  # type: ignore[attr-defined]
        return active_accountant() if given is None else given

    def _open_curator(
        self,
        kind: type[Curator],
        chunks: Chunks,
        plan: ReleasePlan,
        *,
        charge: bool = True,
        unit: str | None = None,
        **options: Any,
    ) -> Curator:
        """Charge the plan and hand over the data; nothing has been read before."""
        return kind(
            chunks,
            plan,
            spender=type(self).__name__,
            unit=unit or self._unit,
            accountant=self._payer(),
            charge=charge,
            verbose=int(self.verbose),  # type: ignore[attr-defined]
            **options,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        # Noise is drawn afresh at every fit, whatever random_state is.
        tags.non_deterministic = True
        return tags
