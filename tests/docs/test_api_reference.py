"""Every public name is in the reference, and nothing else is."""

import importlib
import re
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "api.rst"
MODULES = (
    "sktensor_dp",
    "sktensor_dp.datasets",
    "sktensor_dp.metrics",
    "sktensor_dp.plotting",
    "sktensor_dp.privacy.audit",
    "sktensor_dp.data.partitions",
    "sktensor_dp.published",
    "sktensor_dp.tensor",
    "sktensor_dp.topic_page",
)


def listed() -> set[str]:
    names, module = set(), ""
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        if current := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = current[1]
        elif re.match(r"   [\w.]+$", line):
            names.add(f"{module}.{line.strip()}")
    return names


def test_the_reference_has_every_public_name_and_no_other() -> None:
    public = {f"{m}.{name}" for m in MODULES for name in importlib.import_module(m).__all__}
    assert listed() == public - {f"{module}.main" for module in MODULES}
