"""Tuned constants are at most twelve a package, and each stands in a table of ablations."""

import csv
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import ablations, ablations_of_completions
from sktensor_dp import completion

PACKAGE = Path(completion.__file__).parents[1]
PACKAGES = sorted(path.parent.name for path in PACKAGE.glob("*/defaults.py"))
FAMILIES = [import_module(f"benchmarks.{name}") for name in ablations.FAMILIES]


def defaults_of(package: str) -> ModuleType:
    return import_module(f"sktensor_dp.{package}.defaults")


def names_of(package: str) -> set[str]:
    return {name for name in vars(defaults_of(package)) if name.isupper()}


def parts_of(package: str, name: str) -> Iterator[tuple[ModuleType, str]]:
    """Ablations that set a constant, and the families that measure them."""
    for family in FAMILIES:
        for one in family.ABLATIONS:
            if f"{package}.defaults.{name}" in one.neutral:
                yield family, one.name


def test_every_package_of_tuned_constants_is_known() -> None:
    assert {"completion", "power_method", "spectral_topics", "tensor", "text"} <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_tuned_constants_are_few_and_measured(package: str) -> None:
    names = names_of(package)
    assert 0 < len(names) <= 12
    for name in names:
        parts = list(parts_of(package, name))
        assert parts, name
        # A row is named after its constant, and its neutral value is another one.
        assert all(part.startswith(name) for _, part in parts)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__.split(".")[1])
def test_every_part_stands_in_the_committed_table(family: ModuleType) -> None:
    table = Path(str(family.__file__)).with_suffix(".csv")
    with table.open(encoding="utf-8", newline="") as file:
        parts = {row["part"] for row in csv.DictReader(file)}
    assert {one.name for one in family.ABLATIONS} == parts


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__.split(".")[1])
def test_an_ablation_changes_what_it_names_and_puts_it_back(family: ModuleType) -> None:
    before = {package: dict(vars(defaults_of(package))) for package in PACKAGES}
    for ablation in family.ABLATIONS:
        with ablation.made():
            changed = {
                f"{package}.defaults.{name}"
                for package in PACKAGES
                for name, value in before[package].items()
                if vars(defaults_of(package))[name] != value
            }
        assert changed == {place for place in ablation.neutral if ".defaults." in place}
        assert all(vars(defaults_of(package)) == before[package] for package in PACKAGES)


def test_a_mechanism_is_found_where_its_ablation_says() -> None:
    """A place that moved would be patched nowhere."""
    for family in FAMILIES:
        for ablation in family.ABLATIONS:
            for place in ablation.neutral:
                module, name = place.rsplit(".", 1)
                assert hasattr(import_module(f"sktensor_dp.{module}"), name), place


def test_rows_without_a_change_are_left_out_but_for_the_first() -> None:
    class Shown:
        quick = True
        rows: list

        def table(self, _: str, columns: list, rows: list) -> None:
            self.rows = rows

    one, other = ablations_of_completions.ABLATIONS[:2]
    rows = [[one.name, "a", 1.0, 0.1], [other.name, "a", 0.0, 0.0], [other.name, "b", 0.0, 0.0]]
    shown = Shown()
    ablations.show(shown, "", (one, other), ["part", "set"], rows)  # type: ignore[arg-type]
    assert shown.rows == rows[:2]
