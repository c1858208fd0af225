"""Tuned constants are at most twelve a package, and each stands in a table of ablations."""

import csv
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from benchmarks import ablations
from sktensor_dp import completion

PACKAGE = Path(completion.__file__).parents[1]
PACKAGES = sorted(path.parent.name for path in PACKAGE.glob("*/defaults.py"))
FAMILIES = [import_module(f"benchmarks.{name}") for name in ablations.FAMILIES]
ALL = [one for family in FAMILIES for one in family.ABLATIONS]


def defaults_of(package: str) -> dict[str, Any]:
    """Constants of a package."""
    module = import_module(f"sktensor_dp.{package}.defaults")
    return {name: value for name, value in vars(module).items() if name.isupper()}


def test_every_package_of_tuned_constants_is_known():
    assert {"completion", "power_method", "spectral_lda", "tensor", "text"} <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_tuned_constants_are_few_and_measured(package):
    names = defaults_of(package)
    assert 0 < len(names) <= 12
    for name in names:
        place = f"{package}.defaults.{name}"
        parts = [one.name for one in ALL if place in one.neutral]
        assert parts, name
        # A row is named after its constant.
        assert all(part.startswith(name) for part in parts)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__.split(".")[1])
def test_every_part_stands_in_the_committed_table(family):
    table = PACKAGE.parent / "docs" / "results" / f"{family.__name__.split('.')[1]}.csv"
    with table.open(encoding="utf-8", newline="") as file:
        parts = {row["part"] for row in csv.DictReader(file)}
    assert {one.name for one in family.ABLATIONS} == parts


def test_an_ablation_changes_what_it_names_and_puts_it_back():
    """A place that moved would be patched nowhere."""
    before = {package: defaults_of(package) for package in PACKAGES}
    for ablation in ALL:
        for place in ablation.neutral:
            module, name = place.rsplit(".", 1)
            assert hasattr(resolve_name(f"sktensor_dp.{module}"), name), place
        with ablation.made():
            changed = {
                f"{package}.defaults.{name}"
                for package in PACKAGES
                for name, value in defaults_of(package).items()
                if before[package][name] != value
            }
        assert changed == {place for place in ablation.neutral if ".defaults." in place}
        assert {package: defaults_of(package) for package in PACKAGES} == before
