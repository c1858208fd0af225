"""The page says in at most twelve sentences what a default fit does, and names its releases."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sktensor_dp import (
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)
from sktensor_dp.privacy.catalogue import CATALOGUE

PAGE = Path(__file__).parents[2] / "docs" / "how_it_works.md"
BOUNDS = {"bounds": (-3, 3), "random_state": 0}


def documents(n_words: int, length: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(n_words, 0.2), 3)
    return rng.multinomial(length, topics[np.arange(20_000) % 3])


def table(n_rows: int, n_columns: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    rows, columns = rng.standard_normal((n_rows, 2)), rng.standard_normal((n_columns, 2))
    X = np.argwhere(rng.random((n_rows, n_columns)) < share)
    return X, (rows[X[:, 0]] * columns[X[:, 1]]).sum(axis=1)


def topics() -> Iterator[Any]:
    for n_words, length in ((50, 10), (600, 30)):
        X = documents(n_words, length)
        yield PrivateSpectralLDA(3, epsilon=4.0, random_state=0).fit(X)


def components() -> Iterator[Any]:
    X = np.random.default_rng(0).standard_normal((20_000, 6))
    X[::2] += 3
    yield PrivateTensorPowerMethod(2, data_norm=10.0, random_state=0).fit(X)


def values() -> Iterator[Any]:
    for kind in (PrivateCPCompletion, PrivateTuckerCompletion):
        for epsilon in (0.5, 8.0):
            yield kind(2, epsilon=epsilon, **BOUNDS).fit(*table(300, 300, 0.3))
    yield PrivateCPCompletion(2, epsilon=1.5, **BOUNDS).fit(*table(20_000, 20, 0.5))


def persons() -> Iterator[Any]:
    for kind in (PrivateCPCompletion, PrivateTuckerCompletion):
        model = kind(2, shape=(5000, 40), unit_mode=0, epsilon=2.0, **BOUNDS)
        yield model.fit(*table(5000, 40, 0.5))
    few = PrivateCPCompletion(0, shape=(5000, 10), unit_mode=0, epsilon=2.0, **BOUNDS)
    yield few.fit(*table(5000, 10, 0.5))


def words() -> Iterator[Any]:
    texts = ["cats chase mice", "dogs chase cats"] * 600
    yield PrivateCountVectorizer(max_words_per_document=5, epsilon=2.0).fit(texts)


def mixtures() -> Iterator[Any]:
    X = 0.2 * np.random.default_rng(0).standard_normal((4000, 3)) + np.eye(3)[np.arange(4000) % 3]
    yield PrivateGaussianMixture(3, data_norm=2.0).fit(X)


FITS = {
    "Topics": topics,
    "Groups in measurements": mixtures,
    "Components": components,
    "Ratings: one value is protected": values,
    "Ratings: a person is protected": persons,
    "Vocabularies": words,
}


def sections() -> dict[str, list[str]]:
    parts = re.split(r"^## (.+)$", PAGE.read_text("utf-8"), flags=re.M)[1:]
    steps = [re.findall(r"^\d+\. (.+)$", body, flags=re.M) for body in parts[1::2]]
    return dict(zip(parts[::2], steps, strict=True))


def test_every_section_has_fits() -> None:
    assert set(sections()) == set(FITS)


@pytest.mark.parametrize("section", FITS)
def test_a_default_fit_is_at_most_twelve_sentences(section: str) -> None:
    steps = sections()[section]
    assert 1 <= len(steps) <= 12
    for step in steps:
        assert step.endswith("."), step
        assert not re.search(r"[.?!] +[A-Z]", step), f"more than one sentence: {step}"


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
@pytest.mark.parametrize("section", FITS)
def test_the_page_names_the_releases_of_default_fits(section: str, seeded_noise: Any) -> None:
    """Data are many and components strong, so that fits go all ways with any noise."""
    named = set(re.findall(r"`(\w+)`", " ".join(sections()[section]))) & set(CATALOGUE)
    released = {row.name for model in FITS[section]() for row in model.privacy_report_.rows}
    assert named == released
