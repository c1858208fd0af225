"""Print one table over the catalogue: what replay, sensitivities, laws and audits have found.

Run it by ``make audit``. It ends with an error where anything failed.
"""

import sys
import time
import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from contracts import rows_of_laws, test_replay, test_sensitivity
from contracts.replay_rows import check
from contracts.sensitivities import attained, measured
from privacy.test_audit_releases import COST, audited
from replaying import watch

from sktensor_dp.privacy.calibration import gaussian_epsilon
from sktensor_dp.privacy.catalogue import CATALOGUE

HEAD = ("release", "replayed", "moved", "attained", "largest", "law", "epsilon", "claim")
EXPLAINED = """
replayed   ways to fit with the release: what they show follows from its answers
moved      largest distance of answers where one of them replaces a person; noise hides 1
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
    "spherical laplace": ("spherical laplace, 16 dim", "spherical laplace on tensors"),
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
    found: dict[str, Replayed] = defaultdict(Replayed)
    for row in test_replay.ROWS:
        try:
            seen, failed = check(row), []
        except AssertionError as error:
            X = row.pair(np.random.default_rng(0))[0]
            seen = watch(lambda row=row: row.build(1e-6), row.fit, X)
            failed = [f"{row.name}: {error}"]
        for name in set(seen.releases):
            found[name].ways += 1
            found[name].failed += failed
            if row.relation == "neighbours":
                found[name].moved = max(found[name].moved, seen.moved.get(name, 0.0))
    return found


def sensitivities(name: str) -> tuple[float, float]:
    """Share of the bound that the pair of the proof has, and the largest that was found."""
    rows = [row for row in test_sensitivity.ROWS if row.release == name]
    return max(max(attained(row)) for row in rows), max(measured(row).largest for row in rows)


@cache
def fits(prefix: str) -> bool:
    rows = [row for row in rows_of_laws.ROWS if row.name.startswith(prefix)]
    assert rows, prefix
    return all(rows_of_laws.fits(*draw) for row in rows for draw in row.draw(0).values())


def law(name: str) -> bool | None:
    """Whether noise of its mechanisms has the law; None where no row draws it."""
    entry = CATALOGUE[name]
    laws = [law.law.id for law in (entry.gaussian, entry.pure) if law is not None]
    prefixes = [prefix for law in laws for prefix in LAWS.get(law, SYMMETRIC.get(name, ()))]
    return all(map(fits, prefixes)) if prefixes else None


def audit(name: str) -> tuple[float, float]:
    """Lower bound on epsilon, and the claim."""
    mu = audited(name, COST, 640).mu_lower
    return gaussian_epsilon(mu, 1e-6) if mu > 0 else 0.0, gaussian_epsilon(COST.mu, 1e-6)


def line(name: str, of_replay: Replayed) -> tuple[list[str], list[str]]:
    """Cells of a release, and what of it failed."""
    wrong, ways = list(of_replay.failed), of_replay.ways
    (proved, largest), drawn, (lower, claim) = sensitivities(name), law(name), audit(name)
    if largest > 1:
        wrong.append(f"{name} moves by {largest:.6g} of its bound")
    if drawn is False:
        wrong.append(f"noise of {name} has another law")
    if lower > claim:
        wrong.append(f"an audit of {name} shows more than its epsilon")
    return [
        name,
        f"{ways - len(of_replay.failed)} of {ways}" if ways else "-",
        f"{of_replay.moved:.3f}" if of_replay.moved else "-",
        f"{proved:.3f}", f"{largest:.3f}",
        {True: "ok", False: "FAILS", None: "-"}[drawn],
        f"{lower:.2f}", f"{claim:.2f}",
    ], wrong  # fmt: skip


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
