"""Table of releases on the page of topics."""

from collections.abc import Mapping
from html import escape

from sktensor_dp.privacy.report import PrivacyReport, ReleaseRecord


def releases_section(reports: Mapping[str, PrivacyReport], total: tuple[float, float]) -> str:
    """Every release with its noise and cost, folded."""
    rows = "".join(
        _release_row(step, row, share)
        for step, report in reports.items()
        for row, share in zip(report.rows, report.shares, strict=True)
    )
    notes = dict.fromkeys(note for report in reports.values() for note in report.notes)
    for report in reports.values():
        if report.sampler == "float":
            notes["Floating-point noise: open to attacks on low-order digits."] = None
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Step", "Release", "Noise"))
    for name in ("Sensitivity", "σ", "μ", "ε", "Uses", "Share"):
        head += f'<th scope="col" class="number">{name}</th>'
    return (
        '<details><summary><h2>Privacy report</h2></summary><div class="scroll" tabindex="0" '
        'role="region" aria-label="Privacy report"><table class="report">'
        "<caption>Every point at which data became public. Sensitivity: how far one replacement "
        "moves the statistic. σ: standard deviation of the noise. The cost of each use is μ = "
        "sensitivity / σ for Gaussian noise, ε for pure noise. Share: how much of its step's "
        f"budget a release took in all its uses, {_shares_of(reports)}.</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
        f'<tfoot><tr><th scope="row" colspan="3">Total of all steps</th>'
        '<td class="number" colspan="6">'
        f"ε = {total[0]:.6g} at δ = {total[1]:.3g}</td></tr></tfoot></table></div>"
        + (f"<ul>{items}</ul>" if items else "")
        + "</details>"
    )


def _shares_of(reports: Mapping[str, PrivacyReport]) -> str:
    kinds = {report.shares_of for report in reports.values()}
    if kinds == {"mu^2"}:
        return "as a share of μ²"
    return "as a share of ε" if kinds == {"epsilon"} else "of μ² or, if its noise is pure, of ε"


def _release_row(step: str, row: ReleaseRecord, share: float | None) -> str:
    cells = [f"{value:.4g}" for value in (row.sensitivity, row.sigma)]
    # What a release does not cost is left empty: 0 would read as free.
    cells += [f"{value:.4g}" if value else "" for value in (row.mu, row.epsilon)]
    cells += [str(row.uses), "" if share is None else f"{100 * share:.1f} %"]
    numbers = "".join(f'<td class="number">{cell}</td>' for cell in cells)
    return (
        f"<tr><td>{escape(step)}</td><td><b>{escape(row.name)}</b><br>"
        f"<small>{escape(row.description)}</small></td><td>{escape(row.mechanism)}</td>"
        f"{numbers}</tr>"
    )
