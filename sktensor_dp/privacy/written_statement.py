"""The privacy statement, version 1: what a report says, as plain values for JSON.

What each field means is said in ``privacy_statement.schema.json`` beside this module. Numbers
that follow from others are written too: whoever reads a statement can add it up again.
"""

from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from sktensor_dp.privacy.composition import (
    Composition,
    ReleaseRecord,
    membership_costs,
    renyi_bound,
    role_costs,
    unit_costs,
    zcdp_rho,
)
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost
from sktensor_dp.privacy.selection import stop_probability, trial_cost

FORMAT, VERSION = "sktensor_dp privacy statement", 1
# Orders of the Rényi curve: where its conversions to (epsilon, delta) have their best order.
ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0, 256.0)
NOT_COVERED = {
    "running_time": "How long the fit took and how much memory it used.",
    "raw_data": "The raw data itself: who may read it, how it is stored, what else is made of it.",
    "custodian": "Whoever runs the fit, who can read the data, and the machine it runs on.",
    "error_messages": "Messages about input that is not of the documented kind.",
    "later_input": "What transform, predict or score say of data that they are given later.",
    "other_releases": "Other releases from the same data, unless one ledger counts them all.",
    "facts_about_everyone": "What results say about all units together, which holds of each.",
}
UNITS = {
    "document": "One document: one text, or one row of word counts.",
    "sample": "One sample: one row of numbers.",
    "entry": "One entry of a tensor. A person with several entries is protected less.",
    "slice": "All entries of one slice of a tensor, such as those of one user.",
    "person": "All rows that have one label, such as those of one person.",
}
RELATIONS = {
    "replace_one": "Two data sets with equally many units that differ in one unit.",
    "add_remove": "Two data sets of which one has one unit more than the other.",
}


@dataclass(frozen=True)
class Reported:
    """What of a report is written; its own class says what each field means."""

    epsilon: float
    delta: float
    unit: str
    neighbours: str
    n_units: int
    sampler: str
    seeded: bool
    rows: tuple[ReleaseRecord, ...]
    notes: tuple[str, ...] = ()
    composition: Composition | None = None


def written(report: Reported) -> dict[str, Any]:
    """Return the statement as plain values; infinity is a float."""
    known, number = report.neighbours in RELATIONS, report.n_units
    return {
        "format": FORMAT,
        "version": VERSION,
        "library": {"name": "sktensor_dp", "version": library_version()},
        "guarantee": _guarantee(report),
        "unit": {
            "name": report.unit,
            "in_words": UNITS.get(report.unit, f"One {report.unit}."),
            "number": number if isinstance(number, float) else int(number),
            "number_is": "released" if report.neighbours == "add_remove" else "public",
        },
        "neighbours": {
            "relation": report.neighbours if known else "in_words",
            "in_words": RELATIONS[report.neighbours] if known else report.neighbours,
        },
        "noise": {"sampler": report.sampler, "seeded": report.seeded},
        "composition": _node(report),
        "notes": list(report.notes),
        "not_covered": [{"what": what, "in_words": NOT_COVERED[what]} for what in NOT_COVERED],
    }


def guarantee_in_words(report: Reported) -> str:
    """Say the guarantee in one sentence; its wording is part of version 1."""
    change = {
        "replace_one": f"whichever {report.unit} of {report.n_units} is replaced by another",
        "add_remove": f"whichever {report.unit} is added to about {report.n_units} or removed",
    }.get(report.neighbours, f"between {report.neighbours} (one {report.unit} of {report.n_units})")
    numbers = f"(epsilon = {float(report.epsilon):.6g}, delta = {float(report.delta)!r})"
    text = f"{numbers}-differential privacy {change}."
    if report.epsilon == float("inf"):
        text = f"Nothing is protected: no noise was added {numbers}, {change}."
    if report.sampler == "float":
        text += " Noise has floating-point digits, which can give away what it hides."
    if report.seeded:
        return f"Nothing is protected: the noise was seeded. With secret noise it would be: {text}"
    return text


def allowed_trial(node: Composition) -> PrivacyCost:
    """Most that a trial of a selection may cost that sets as much aside as its trial does."""
    failure = max(cost.delta for cost in unit_costs(node.parts[0].of))
    return trial_cost(node.epsilon, node.delta, stop_probability(node.n_trials), failure)


def norm_of(mechanism: str) -> str:
    """Norm in which a mechanism takes the sensitivity."""
    return "l1" if mechanism.startswith(("laplace", "piecewise")) else "l2"


def _guarantee(report: Reported) -> dict[str, Any]:
    whole = report.composition
    mu = rho = curve = None
    if whole is not None:
        costs = unit_costs(whole)
        if all(cost.epsilon == cost.delta == 0 for cost in costs):
            mu = max(cost.mu for cost in costs)
        rho, values = zcdp_rho(whole), [renyi_bound(whole, order) for order in ORDERS]
        curve = None if None in values else {"orders": list(ORDERS), "epsilons": values}
    return {
        "in_words": guarantee_in_words(report),
        "protects": not report.seeded and bool(report.epsilon < float("inf")),
        "epsilon": float(report.epsilon),
        "delta": float(report.delta),
        "mu": mu,
        "zcdp_rho": rho,
        "rdp": curve,
    }


def _node(report: Reported) -> dict[str, Any]:
    if report.composition is None:
        rows = Composition("releases", rows=report.rows)
        return {"kind": "unrecorded", "releases": _releases(rows)}
    return _composed(report.composition)


def _composed(node: Composition) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": node.kind}
    if node.kind == "releases":
        found |= {"releases": _releases(node), "unmade": _unmade(node)}
    elif node.kind == "selection":
        stop = stop_probability(node.n_trials)
        found |= {
            "expected_trials": float(node.n_trials),
            "stop_probability": stop,
            "epsilon": float(node.epsilon),
            "delta": float(node.delta),
            "trial_may_cost": asdict(allowed_trial(node)),
        }
    elif node.kind == "conversion":
        found |= {"from": "add_remove", "to": "replace_one"}
    if node.parts:
        found["parts"] = [
            {
                "role": part.role,
                "times": part.times,
                "units": part.n_units,
                "composition": _composed(part.of),
            }
            for part in node.parts
        ]
        found["units_read"] = sum(part.times * part.n_units for part in node.parts)
    if node.memberships:
        of_role = role_costs(node)
        found["a_unit_is_in"] = [
            {
                "parts": [{"role": role, "number": number} for role, number in kind],
                "unit_costs": [asdict(cost) for cost in membership_costs(of_role, kind)],
            }
            for kind in node.memberships
        ]
    found["unit_costs"] = [asdict(cost) for cost in unit_costs(node)]
    return found


def _releases(node: Composition) -> list[dict[str, Any]]:
    (whole,) = unit_costs(node)
    return [
        {
            "name": row.name,
            "description": row.description,
            "mechanism": row.mechanism,
            "norm": norm_of(row.mechanism),
            "sensitivity": row.sensitivity,
            "sigma": row.sigma,
            **_spent(row, whole),
        }
        for row in node.rows
    ]


def _unmade(node: Composition) -> list[dict[str, Any]]:
    (whole,) = unit_costs(node)
    return [{"name": planned.name, **_spent(planned, whole)} for planned in node.unmade]


def _spent(release: ReleaseRecord | PlannedRelease, whole: PrivacyCost) -> dict[str, Any]:
    share = _share(release, whole)
    return {**asdict(release.cost), "uses": release.uses, "share": share}


def _share(release: ReleaseRecord | PlannedRelease, whole: PrivacyCost) -> float | None:
    """Part of the releases' mu**2, or of their pure epsilon, all uses together."""
    cost = release.cost
    part, of = (cost.epsilon, whole.epsilon) if cost.epsilon > 0 else (cost.mu, whole.mu)
    if not 0 < of < float("inf"):
        return None
    ratio = part / of
    return min(1.0, release.uses * (ratio if cost.epsilon > 0 else ratio * ratio))


def library_version() -> str:
    """Version of this library, where it is installed."""
    try:
        return metadata.version("sktensor-dp")
    except metadata.PackageNotFoundError:
        return "unknown"
