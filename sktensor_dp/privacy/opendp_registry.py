"""Export of a report to the Differential Privacy Deployments Registry of OpenDP."""

import json
import math
from importlib.resources import files
from typing import Any

from sktensor_dp.privacy.report import PrivacyReport, percent_rounded_down, written

__all__ = ["registry_entry"]


def registry_entry(report: PrivacyReport) -> dict[str, Any]:
    """Return a draft entry for the registry, whose fields are those of its schema of July 2026.

    Parameters
    ----------
    report : PrivacyReport
        Report on everything that is published, such as ``privacy_report_`` of a fit.

    Returns
    -------
    dict
        Plain values; ``"TO FILL IN"`` where a report does not know.

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
    template = files("sktensor_dp.privacy").joinpath("opendp_registry.json")
    entry: dict[str, Any] = json.loads(template.read_text(encoding="utf-8"))
    unprotected = [
        "Parameters of the fit, and names and numbers of columns.",
        *(one["in_words"] for one in stated["not_covered"]),
    ]
    if report.neighbours != "add_remove":
        unprotected.insert(0, f"The number of {report.unit}s, {report.n_units}.")
    laws = ", ".join(dict.fromkeys(row.mechanism for row in report.rows))
    releases = "; ".join(f"{row.name} ({row.uses} times)" for row in report.rows)
    delta = {} if pure else {"delta": report.delta}
    mu = "" if report.mu is None else f" The whole is {report.mu:.6g}-Gaussian DP."
    missed = percent_rounded_down(report.false_negative_rate(0.05))
    entry["deployment"]["dp_variant"] |= {
        "variant_name": "Pure DP" if pure else "Approximate DP",
        "unprotected_quantities": "\n".join(f"- {item}" for item in unprotected),
    }
    entry["deployment"]["privacy_loss"] |= {
        "privacy_unit": report.unit,
        "privacy_unit_details": f"{stated['unit']['in_words']} {stated['neighbours']['in_words']}",
        "privacy_parameters": {"epsilon": report.epsilon} | delta,
        "privacy_parameters_details": (
            f"{report.guarantee}.{mu} A test of what one {report.unit} holds, with false alarms in "
            f"5 %, misses at least {missed:g} %."
        ),
    }
    entry["deployment"]["implementation"]["mechanisms"] = (
        f"sktensor_dp {stated['library']['version']}; laws: {laws}. Releases: {releases}"
    )
    return entry
