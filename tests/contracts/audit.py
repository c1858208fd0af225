"""Print one table over the catalogue: what replay, sensitivities, laws and audits have found.

Run it by ``make audit``. Columns whose contract is not there are empty. It ends with an error
where anything failed.
"""

import sys
import time
import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from replaying import watch

from sktensor_dp.privacy.calibration import gaussian_epsilon
from sktensor_dp.privacy.releases import CATALOGUE

HEAD = ("release", "replayed", "moved", "attained", "largest", "law", "epsilon", "claim")
EXPLAINED = """
replayed   ways to fit with the release: what they show follows from its answers
moved      largest distance of neighbours' answers in these fits; noise hides 1
attained   distance of the pair that its proof names, as a share of the bound
largest    largest such distance that a search has found
law        noise has the law that the mechanism states
epsilon    lower bound by 640 releases of two neighbours, through mu, at delta 1e-6
"""
# Rows of the contract of laws by which the noise of a mechanism is drawn: their names begin so.
LAWS = {
    "gaussian": ("gaussian vector",),
    "laplace": ("laplace vector",),
    "laplace, symmetric": ("laplace pair masses",),
    "spherical laplace": ("spherical laplace, 2 dim", "spherical laplace on tensors"),
    "spherical laplace, by rows": ("spherical laplace, by rows",),
}
SYMMETRIC = {
    "pair_moments": ("gaussian pair masses",),
    "second_moments": ("isotropic matrix",),
    "whitened_triple_moments": ("isotropic tensor",),
    "triple_moments": ("isotropic tensor",),
}


@dataclass
class Replayed:
    """Rows of the contract of replay that a release takes part in."""

    ways: int = 0
    failed: list[str] = field(default_factory=list)
    moved: float = 0.0


def replayed() -> dict[str, Replayed]:
    from contracts.replay_rows import check
    from contracts.test_replay import ROWS

    found: dict[str, Replayed] = defaultdict(Replayed)
    for row in ROWS:
        try:
            seen, failed = check(row), []
        except AssertionError as error:
            X = row.pair(_rng())[0]
            seen = watch(lambda row=row: row.build(1e-6), row.fit, X)
            failed = [f"{row.name}: {error}"]
        for name in set(seen.releases):
            found[name].ways += 1
            found[name].failed += failed
            if row.relation == "neighbours":
                found[name].moved = max(found[name].moved, seen.moved.get(name, 0.0))
    return found


def _rng() -> Any:
    import numpy as np

    return np.random.default_rng(0)


def sensitivities(name: str) -> tuple[float, float] | None:
    """Share of the bound that the pair of the proof has, and the largest that was found."""
    try:
        from contracts.sensitivities import attained, measured
        from contracts.test_sensitivity import ROWS
    except ImportError:
        return None
    rows = [row for row in ROWS if row.release == name]
    return max(max(attained(row)) for row in rows), max(measured(row).largest for row in rows)


@cache
def _fits(prefix: str) -> bool | None:
    from contracts.rows_of_laws import ROWS, fits

    rows = [row for row in ROWS if row.name.startswith(prefix)]
    draws = (draw for row in rows for draw in row.draw(0).values())
    return all(fits(*draw) for draw in draws) if rows else None


def law(name: str) -> bool | None:
    """Whether noise of its mechanisms has the law; None where no row draws it."""
    try:
        import contracts.rows_of_laws  # noqa: F401
    except ImportError:
        return None
    entry, found = CATALOGUE[name], []
    for mechanism in filter(None, (entry.gaussian, entry.pure)):
        prefixes = LAWS.get(mechanism.name, SYMMETRIC.get(name, ()))
        found += [_fits(prefix) for prefix in prefixes]
    return all(found) if found and None not in found else None


def audit(name: str) -> tuple[float, float] | None:
    """Lower bound on epsilon, and the claim."""
    try:
        from privacy.test_audit_releases import COST, audited
    except ImportError:
        return None
    found = audited(name, COST, 640)
    claim = gaussian_epsilon(COST.mu, 1e-6)
    return (gaussian_epsilon(found.mu_lower, 1e-6) if found.mu_lower > 0 else 0.0), claim


def line(name: str, of_replay: Replayed) -> tuple[list[str], list[str]]:
    """Cells of a release, and what of it failed."""
    wrong = list(of_replay.failed)
    ways = f"{of_replay.ways - len(wrong)} of {of_replay.ways}" if of_replay.ways else "-"
    cells = [name, ways, f"{of_replay.moved:.3f}" if of_replay.moved else "-"]
    shares = sensitivities(name)
    cells += ["-", "-"] if shares is None else [f"{share:.3f}" for share in shares]
    if shares is not None and shares[1] > 1:
        wrong.append(f"{name} moves by {shares[1]:.6g} of its bound")
    drawn = law(name)
    cells.append({True: "ok", False: "FAILS", None: "-"}[drawn])
    if drawn is False:
        wrong.append(f"noise of {name} has another law")
    bounds = audit(name)
    cells += ["-", "-"] if bounds is None else [f"{bound:.2f}" for bound in bounds]
    if bounds is not None and bounds[0] > bounds[1]:
        wrong.append(f"an audit of {name} shows more than its epsilon")
    return cells, wrong


def main() -> int:
    warnings.simplefilter("ignore")
    begun, table, wrong = time.monotonic(), [list(HEAD)], []
    of_replay = replayed()
    for name in CATALOGUE:
        cells, failed = line(name, of_replay[name])
        table.append(cells)
        wrong += failed
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for cells in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)))
    print(EXPLAINED)
    for one in dict.fromkeys(wrong):
        print("FAILED", one)
    print(f"{len(CATALOGUE)} releases in {time.monotonic() - begun:.0f} s")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
