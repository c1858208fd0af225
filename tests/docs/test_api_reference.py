"""Every public name is in the reference, and nothing else is."""

import importlib
import re
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "api.rst"
MODULES = (
    "sktensor_dp",
    "sktensor_dp.datasets",
    "sktensor_dp.metrics",
    "sktensor_dp.plotting",
    "sktensor_dp.privacy.audit",
    "sktensor_dp.privacy.execution",
    "sktensor_dp.privacy.registry",
    "sktensor_dp.published",
    "sktensor_dp.tensor",
    "sktensor_dp.topic_page",
)


def listed() -> set[str]:
    """Full names under autosummary, each with the module that is current there."""
    names, module, inside = set(), "", False
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        if current := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = current[1]
        if line.startswith(".. autosummary"):
            inside = True
        elif inside and re.match(r"   [\w.]+$", line):
            names.add(f"{module}.{line.strip()}")
        elif line and not line.startswith("   "):
            inside = False
    return names


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    public = {f"{module}.{name}" for name in importlib.import_module(module).__all__}
    assert not public - {f"{module}.main"} - listed()


def test_every_name_in_the_reference_is_public() -> None:
    public = {f"{m}.{name}" for m in MODULES for name in importlib.import_module(m).__all__}
    assert not listed() - public
