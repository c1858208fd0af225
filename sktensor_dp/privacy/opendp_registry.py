"""Export of a report to the Differential Privacy Deployments Registry of OpenDP."""

import math
from typing import Any

from sktensor_dp.privacy.report import PrivacyReport, Statement, rounded_down, written

__all__ = ["registry_entry"]

# Placeholder for what the registry asks and no statement holds.
TO_FILL_IN = "TO FILL IN"


def registry_entry(report: PrivacyReport) -> dict[str, Any]:
    """Return a draft entry for the registry, whose fields are those of its schema of July 2026.

    Parameters
    ----------
    report : PrivacyReport
        Report on everything that is published, such as ``privacy_report_`` of a fit.

    Returns
    -------
    dict
        Plain values; ``"TO FILL IN"`` where a report does not know. ValueError if nothing is
        protected, as noise was seeded or left out.

    Raises
    ------
    ValueError
        If nothing is protected, as noise was seeded or left out.

    Examples
    --------
    >>> from sktensor_dp import PrivateSpectralLDA
    >>> from sktensor_dp.privacy.opendp_registry import registry_entry
    >>> report = PrivateSpectralLDA(1, epsilon=4.0).fit([[3, 1, 2]] * 2000).privacy_report_
    >>> registry_entry(report)["deployment"]["privacy_loss"]["privacy_unit"]
    'document'
    """
    if report.seeded or math.isinf(report.epsilon):
        raise ValueError("report must be of a fit that protects: with secret noise, epsilon < inf.")
    stated, pure = written(report), report.delta == 0
    unprotected = [
        "Parameters of the fit, and names and numbers of columns.",
        *(one["in_words"] for one in stated["not_covered"]),
    ]
    if report.neighbours != "add_remove":
        unprotected.insert(0, f"The number of {report.unit}s, {report.n_units}.")
    laws = ", ".join(dict.fromkeys(row.mechanism for row in report.rows))
    releases = "; ".join(f"{row.name} ({row.uses} times)" for row in report.rows)
    return {
        "url_slug": TO_FILL_IN,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": TO_FILL_IN,
                "data_curators": [TO_FILL_IN],
                "intended_use": TO_FILL_IN,
                "data_product_type": "Machine learning model",
                "data_product_region": TO_FILL_IN,
                "description": TO_FILL_IN,
                "publication_date": "1900-01-01",
            },
            "dp_variant": {
                "variant_name": "Pure DP" if pure else "Approximate DP",
                "data_domain": TO_FILL_IN,
                "unprotected_quantities": "\n".join(f"- {said}" for said in unprotected),
            },
            "privacy_loss": _privacy_loss(report, stated),
            "deployment_model": {
                "model_name": "Central",
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "Everything but the releases below is computed from them.",
                "composition": "Gaussian releases compose by the sum of mu squared, pure ones by "
                "that of epsilon; the privacy statement has each.",
            },
            "implementation": {
                "mechanisms": f"sktensor_dp {stated['library']['version']}; laws: {laws}. "
                f"Releases: {releases}",
                "justification": TO_FILL_IN,
            },
            "administrative": {"registry_authors": [TO_FILL_IN]},
        },
    }


def _privacy_loss(report: PrivacyReport, stated: Statement) -> dict[str, Any]:
    """Unit and parameters, from a report and its statement."""
    parameters = {"epsilon": report.epsilon, "delta": report.delta}
    if report.delta == 0:
        del parameters["delta"]
    mu = "" if report.mu is None else f" The whole is {report.mu:.6g}-Gaussian DP."
    missed = rounded_down(report.false_negative_rate(0.05))
    return {
        "privacy_unit": report.unit,
        "privacy_unit_details": f"{stated['unit']['in_words']} {stated['neighbours']['in_words']}",
        "privacy_parameters": parameters,
        "privacy_parameters_details": (
            f"{report.guarantee}.{mu} A test of what one {report.unit} holds, with false alarms in "
            f"5 %, misses at least {missed:g} %."
        ),
    }
