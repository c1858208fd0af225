"""Every public estimator has an example, a look in notebooks, a page, a place in the gallery."""

import doctest
import inspect
import re
from pathlib import Path

import pytest
from cases import MODELS
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

import sktensor_dp
from sktensor_dp import PrivateSearchCV, PrivateSpectralLDA

ROOT = Path(__file__).parents[2]
ESTIMATORS = [
    found
    for name in sktensor_dp.__all__
    if inspect.isclass(found := getattr(sktensor_dp, name)) and issubclass(found, BaseEstimator)
]
assert len(ESTIMATORS) >= 6
GALLERY = [path.read_text("utf-8") for path in (ROOT / "examples" / "gallery").rglob("plot_*.py")]
GUIDE = re.findall(r"^(\w+)$", (ROOT / "docs" / "guide.md").read_text("utf-8"), re.MULTILINE)


def made(kind: type) -> BaseEstimator:
    if kind is PrivateSearchCV:
        return kind(PrivateSpectralLDA(2), {"n_components": [2, 3]}, score_bounds=(-1.0, 0.0))
    required = {"rank": 2, "bounds": (0.0, 1.0), "data_norm": 1.0}
    names = inspect.signature(kind).parameters
    return kind(**{name: value for name, value in required.items() if name in names})


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_an_estimator_is_documented(kind: type) -> None:
    text = inspect.getdoc(kind) or ""
    examples = doctest.DocTestParser().get_examples(text)
    assert any(f"{kind.__name__}(" in example.source for example in examples)
    assert re.search(r"^Privacy\b|\*\*Privacy", text, re.MULTILINE), "no section on privacy"
    assert any(f"{kind.__name__}(" in page for page in GALLERY), "no example in the gallery"
    assert any(model.kind is kind for model in MODELS.values()), "no row in tests/cases.py"
    pages = [
        page for page in GUIDE if kind.__name__ in (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    ]
    assert pages, "no page of the user guide"


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_an_estimator_shows_itself_in_notebooks(kind: type) -> None:
    estimator = made(kind)
    page = estimator_html_repr(estimator)
    assert kind.__name__ in page
    assert "sk-container" in page
    assert kind.__name__ in estimator._repr_mimebundle_()["text/plain"]
