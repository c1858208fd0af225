"""Sessions for which nobody pays."""

from typing import Any

from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.session import Session


def opened(chunks: Any, plan: ReleasePlan, unit: str = "unit", **options: Any) -> Session:
    """Session that is open, and stays so until it is left."""
    return Session(chunks, plan, unit=unit, **options).__enter__()
