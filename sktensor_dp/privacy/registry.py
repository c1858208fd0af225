"""Export of a report to the Differential Privacy Deployments Registry of OpenDP."""

import math
from typing import Any

from sktensor_dp.privacy.report import NOT_COVERED, RELATIONS, UNITS, PrivacyReport, library_version

__all__ = ["registry_entry"]

# What a statement cannot know; the registry asks for it.
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
        Plain values. What a report does not know is ``"TO FILL IN"``. As JSON it is YAML too,
        which the registry takes.

    Raises
    ------
    ValueError
        If nothing is protected, as noise was seeded or left out.

    Examples
    --------
    >>> from sktensor_dp import PrivateSpectralLDA
    >>> from sktensor_dp.privacy.registry import registry_entry
    >>> report = PrivateSpectralLDA(1, epsilon=1.0).fit([[3, 1, 2]] * 2000).privacy_report_
    >>> registry_entry(report)["deployment"]["privacy_loss"]["privacy_unit"]
    'document'
    """
    if report.seeded or math.isinf(report.epsilon):
        raise ValueError("report must be of a fit that protects: with secret noise, epsilon < inf.")
    parameters = {"epsilon": report.epsilon}
    if report.delta > 0:
        parameters["delta"] = report.delta
    laws = ", ".join(dict.fromkeys(row.mechanism for row in report.rows))
    mu = "" if report.mu is None else f" The whole is {report.mu:.6g}-Gaussian DP."
    missed = report.false_negative_rate(0.05)
    unprotected = [
        "Parameters of the fit, and names and numbers of columns.",
        *NOT_COVERED.values(),
    ]
    if report.neighbours != "add_remove":
        unprotected.insert(0, f"The number of {report.unit}s, {report.n_units}.")
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
                "variant_name": "Approximate DP" if report.delta > 0 else "Pure DP",
                "data_domain": TO_FILL_IN,
                "unprotected_quantities": "\n".join(f"- {said}" for said in unprotected),
            },
            "privacy_loss": {
                "privacy_unit": report.unit,
                "privacy_unit_details": " ".join(
                    [
                        UNITS.get(report.unit, f"One {report.unit}."),
                        RELATIONS.get(report.neighbours, report.neighbours),
                    ]
                ),
                "privacy_parameters": parameters,
                "privacy_parameters_details": (
                    f"{report.guarantee}.{mu} A test of what one {report.unit} holds, with false "
                    f"alarms in 5 %, misses at least {math.floor(1000 * missed) / 10:g} %."
                ),
            },
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
                "mechanisms": f"sktensor_dp {library_version()}; laws: {laws}. Releases: "
                + "; ".join(f"{row.name} ({row.uses} times)" for row in report.rows),
                "justification": TO_FILL_IN,
            },
            "administrative": {"registry_authors": [TO_FILL_IN]},
        },
    }
