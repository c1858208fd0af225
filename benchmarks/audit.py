"""How much of its claim every release and every estimator can be seen to give away.

Releases: one law of noise at a time, on values as far apart as its sensitivity.
Estimators: fits of :func:`~sktensor_dp.privacy.audit.worst_case`, at epsilon 16 (2 where
delta is 0) so that few fits show something, and with parameters that leave few numbers
between a release and the fitted attributes; what follows a release hides a part of it. One
run: 2000 values of a table, each at one end of the bounds by a coin. Confidence .95; noise
is real, so that numbers vary from run to run. A true claim is exceeded by chance in about
one row of a thousand.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import Report
from sktensor_dp import (
    NotEnoughDataWarning,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)
from sktensor_dp.privacy import mechanisms
from sktensor_dp.privacy.audit import (
    audit,
    audit_samples,
    worst_case,
)
from sktensor_dp.privacy.noise_source import NoiseSource

__all__ = ["run"]

DELTA, EPSILON, MU, PURE_EPSILON = 1e-6, 16.0, 1.0, 1.0
# In two dimensions the first coordinate shows about .6 of what spherical noise gives away.
MU_BAR, EPSILON_BAR = 0.85, 0.5
TOPICS_BAR = 0.3
COMMON = {"epsilon": EPSILON, "random_state": 0}
Law = Callable[[np.ndarray, NoiseSource], np.ndarray]


def run(report: Report) -> None:
    warnings.simplefilter("ignore", NotEnoughDataWarning)
    scale = 5 if report.quick else 1
    run_releases(report, 20_000 // scale)
    run_estimators(report, 400 // scale)


def gaussian_laws() -> dict[str, tuple[tuple[int, ...], Law]]:
    return {
        "gaussian": ((2,), lambda x, source: mechanisms.gaussian_vector(x, 1.0, MU, source)),
        "gaussian, symmetric": (
            (2, 2), lambda x, source: mechanisms.gaussian_matrix(x, 1.0, MU, source),
        ),
        "gaussian, pair masses": (
            (2, 2), lambda x, source: mechanisms.gaussian_pair_masses(x, 1.0, MU, source),
        ),
    }  # fmt: skip


def pure_laws() -> dict[str, tuple[tuple[int, ...], Law]]:
    strength = 1.0, PURE_EPSILON
    return {
        "laplace": ((2,), lambda x, source: mechanisms.laplace_vector(x, *strength, source)),
        "laplace, pair masses": (
            (2, 2), lambda x, source: mechanisms.laplace_pair_masses(x, *strength, source),
        ),
        "spherical laplace": (
            (2,), lambda x, source: mechanisms.spherical_laplace_vector(x, *strength, source),
        ),
        "spherical laplace, by rows": (
            (2, 1), lambda x, source: mechanisms.spherical_laplace_rows(x, *strength, source),
        ),
    }  # fmt: skip


def samples(shape: tuple[int, ...], law: Law, n_runs: int) -> list[np.ndarray]:
    """First coordinate of releases of zero, and of what differs by 1 in it."""
    source, found = NoiseSource(), []
    for size in (0.0, 1.0):
        value = np.zeros(shape)
        value.flat[0] = size
        found.append(np.array([law(value.copy(), source).flat[0] for _ in range(n_runs)]))
    return found


def run_releases(report: Report, n_runs: int) -> None:
    rows, shares = [], {"mu": [1.0], "epsilon": [1.0]}
    for name, (shape, law) in gaussian_laws().items():
        found = audit_samples(*samples(shape, law, n_runs), delta=DELTA)
        shares["mu"].append(found.mu_lower / MU)
        rows.append([name, "mu", MU, found.mu_lower])
    for name, (shape, law) in pure_laws().items():
        found = audit_samples(*samples(shape, law, n_runs))
        share = found.epsilon_lower / PURE_EPSILON
        shares["epsilon"].append(share)
        rows.append([name, "epsilon", PURE_EPSILON, found.epsilon_lower])
    title = f"releases, {n_runs} draws of each of two values"
    report.table(
        title, ["law", "parameter", "claim", "audited"], rows,
        file="audit_of_laws", how=f"{n_runs} draws of each of two values, confidence .95",
    )  # fmt: skip
    report.bar("least share of mu, Gaussian laws", min(shares["mu"]), MU_BAR, at_least=True)
    report.bar("least share of epsilon, pure laws", min(shares["epsilon"]), EPSILON_BAR,
               at_least=True)  # fmt: skip
    report.bar("largest share", max(shares["mu"][1:] + shares["epsilon"][1:]), 1.0)


def estimators() -> dict[str, tuple[Any, int | None]]:
    """Estimators and numbers of units, by a name that says what is special about them."""
    built: dict[str, tuple[Any, int | None]] = {
        f"PrivateSpectralLDA, {name}": (model, 200) for name, model in topic_models().items()
    }
    for kind in ("whitened_tensor", "moment_tensor", "iteration", "stream"):
        by_steps = {"max_iter": 1} if kind in ("iteration", "stream") else {}
        method = PrivateTensorPowerMethod(
            1, data_norm=1.0, perturbation=kind, whiten=kind == "whitened_tensor", **COMMON,
            **by_steps,
        )  # fmt: skip
        built[f"PrivateTensorPowerMethod, {kind}"] = (method, 400)
    vocabulary = PrivateCountVectorizer(max_words_per_document=2, min_df=0, epsilon=EPSILON)
    built["PrivateCountVectorizer"] = (vocabulary, 200)
    return {**built, **{name: (model, None) for name, model in completions().items()}}


def topic_models() -> dict[str, Any]:
    """Public limits in proportion to the norms of a document of one word: all of them bind."""
    one_each = {"n_components": 2, "doc_topic_prior": 0, "n_refinements": 0, **COMMON}
    return {
        "whitened_tensor": PrivateSpectralLDA(
            clip_norm={"counts": 1, "pairs": math.sqrt(0.5), "triples": 1}, **one_each
        ),
        "moment_tensor": PrivateSpectralLDA(
            perturbation="moment_tensor",
            clip_norm={"counts": 1, "pairs": math.sqrt(2), "triples": 1},
            **one_each,
        ),
        "one refinement": PrivateSpectralLDA(1, n_refinements=1, **COMMON),
    }


def completions() -> dict[str, Any]:
    """One sweep, and no components of persons: they release the same for both models."""
    built: dict[str, Any] = {}
    entries = {"bounds": (0, 1), "shape": (1, 1), "max_iter": 1, **COMMON}
    pure = {**entries, "epsilon": 2.0, "delta": 0}
    for model in (PrivateCPCompletion, PrivateTuckerCompletion):
        for kind in ("input", "sufficient_statistics", "output"):
            built[f"{model.__name__}, {kind}, delta=0"] = model(1, perturbation=kind, **pure)
        built[f"{model.__name__}, gradient"] = model(1, perturbation="gradient", **entries)
    built["PrivateCPCompletion, slice"] = PrivateCPCompletion(
        0, bounds=(0, 1), shape=(40, 2), unit_mode=0, **COMMON
    )
    return built


def run_estimators(report: Report, n_runs: int) -> None:
    rows, shares_of = [], {}
    for name, (estimator, n_units) in estimators().items():
        case = worst_case(estimator, n_units)
        found = audit(estimator, case.data, case.neighbour, n_runs=n_runs, statistic=case.statistic)
        claims, bounds = (
            (found.epsilon_claim, found.mu_claim),
            (found.epsilon_lower, found.mu_lower),
        )
        shares_of[name] = max(
            bound / claim for bound, claim in zip(bounds, claims, strict=True) if claim is not None
        )
        claimed = ["" if claim is None else claim for claim in claims]
        rows.append([name, claimed[0], bounds[0], claimed[1], bounds[1]])
        report.note(f"{name}: {found}")
    how = f"{n_runs} fits of each of two data sets"
    report.table(
        f"estimators, {how}",
        ["estimator", "epsilon", "audited", "mu", "audited"], rows,
        file="audit_of_estimators", how=f"{how}, confidence .95",
    )  # fmt: skip
    report.bar("largest share of an estimator's claim", max(shares_of.values()), 1.0)
    topics = [share for name, share in shares_of.items() if name.startswith("PrivateSpectralLDA")]
    report.bar("largest share of a topic model's claim", max(topics), TOPICS_BAR, at_least=True)
