"""The readme's example runs as printed, and does what the text around it says."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from sktensor_dp import NotEnoughDataWarning

README = Path(__file__).parents[1] / "README.md"


def test_example_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        # Whether the released moments show all ten topics is up to the noise.
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        exec(compile(example, str(README), "exec"), names)
    assert np.allclose(np.asarray(names["shares"]).sum(axis=1), 1)
    epsilon, delta = names["budget"].total()  # type: ignore[attr-defined]
    assert (round(epsilon, 9), delta) == (4.0, 1e-6)
    printed = capsys.readouterr().out
    assert "differential privacy for replacing one document" in printed
    assert "pair_moments" in printed


def test_example_has_ten_lines_of_code() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 10


def test_links_lead_somewhere() -> None:
    for page in [README, *README.parent.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
