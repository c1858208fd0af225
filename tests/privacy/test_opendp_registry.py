"""Drafts for the registry of deployments."""

import json
import math
from dataclasses import replace

import pytest
from cases import report_of

from sktensor_dp.cli import main
from sktensor_dp.privacy.opendp_registry import registry_entry

# What the registry's schema of July 2026 asks of a draft, and the choices that it gives.
FIELDS = {
    *("url_slug", "status", "tier", "deployment", "basic", "dp_variant", "privacy_loss"),
    *("deployment_model", "accounting", "implementation", "administrative", "name"),
    *("data_curators", "description", "intended_use", "data_product_type"),
    *("data_product_region", "publication_date"),
}


@pytest.mark.parametrize("name", ["topics", "components, stream", "topics, pure"])
def test_an_entry_has_the_fields_of_the_registry(name):
    found, pure = report_of(name), name == "topics, pure"
    entry = registry_entry(found)
    deployment = entry["deployment"]
    assert {*entry, *deployment, *deployment["basic"]} == FIELDS
    assert deployment["basic"]["data_curators"] == ["TO FILL IN"]
    assert deployment["dp_variant"]["variant_name"] == ("Pure DP" if pure else "Approximate DP")
    loss = deployment["privacy_loss"]
    delta = {} if pure else {"delta": found.delta}
    assert loss["privacy_parameters"] == {"epsilon": found.epsilon, **delta}
    assert pure or f"{found.mu:.6g}-Gaussian" in loss["privacy_parameters_details"]
    for row in found.rows:
        assert row.name in deployment["implementation"]["mechanisms"]


def test_the_command_writes_an_entry(tmp_path, capsys):
    path, found = tmp_path / "statement.json", report_of("topics")
    path.write_text(found.to_json(), "utf-8")
    assert main(["report", "registry", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == registry_entry(found)
    for bare in (replace(found, seeded=True), replace(found, epsilon=math.inf)):
        with pytest.raises(ValueError, match="report must be of a fit that protects"):
            registry_entry(bare)
    path.write_text(replace(found, seeded=True).to_json(), "utf-8")
    assert main(["report", "registry", str(path)]) == 1
    assert "must be of a fit that protects" in capsys.readouterr().err
