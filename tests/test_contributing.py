"""The checklists of CONTRIBUTING.md, followed on toys; a toy without a step fails at it."""

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checklists import CHECKLISTS, EstimatorDraft, MechanismDraft, ReleaseDraft, first_missing
from scipy import stats
from sklearn.base import BaseEstimator
from ways_to_fit import COUNTS, SAMPLES, start_of

from sktensor_dp import (
    PrivacyLeakWarning,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    unsafe_seeded_noise,
)
from sktensor_dp.estimator.base import Fitted, PlannedFit, PrivateEstimatorMixin, columns_of
from sktensor_dp.estimator.inputs import checked_table
from sktensor_dp.estimator.parameters import Number
from sktensor_dp.model_files.fields import SavedState
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.mechanisms import Mechanism
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.releases import GAUSSIAN, LAPLACE, SPHERICAL_VECTOR, Release
from sktensor_dp.queries.samples import (
    LiftedBall,
    SampleChunk,
    SampleChunks,
    SecondMoments,
    as_samples,
)

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


@pytest.mark.parametrize("title", CHECKLISTS)
def test_the_page_lists_the_steps_that_are_checked(title: str) -> None:
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    steps = re.findall(r"^\d+\. `(\w+)`: ", section, re.MULTILINE)
    assert steps == [check.__name__ for check in CHECKLISTS[title]]


def test_the_files_that_the_page_names_exist() -> None:
    for path in re.findall(r"`((?:tests|docs|sktensor_dp)/[\w/.*]+)`", PAGE.read_text("utf-8")):
        assert list(PAGE.parent.glob(path)), path


# A new release: the sum of samples scaled into a ball.


@dataclass(frozen=True)
class ClippedSums:
    limit: float

    l1_sensitivity = math.inf

    @property
    def l2_sensitivity(self) -> float:
        return 2 * self.limit

    def total(self, chunk: SampleChunk) -> np.ndarray:
        return (chunk.X * chunk.scales(self.limit)[:, None]).sum(axis=0)


@dataclass
class Thawed:
    limit: float
    l1_sensitivity = math.inf
    l2_sensitivity = ClippedSums.l2_sensitivity
    total = ClippedSums.total


class ForgetsSigns(ClippedSums):
    l2_sensitivity = property(lambda self: math.sqrt(2) * self.limit)  # type: ignore[assignment]


class Means(ClippedSums):
    def total(self, chunk: SampleChunk) -> np.ndarray:
        return super().total(chunk) / chunk.X.shape[0]


TOY_PAGE = """# Clipped sums

Release `clipped_sums`; query `{module}.{name}`; law: Gaussian.

## Statement

Samples are scaled into a ball of radius C and added.

Sensitivity of the sum, one unit replaced:

```python
C = limit
L2 = 2 * C
L1 = inf
```

## Proof

Two points of the ball are 2C apart at most. $\\blacksquare$

## Tests

`tests/test_contributing.py`
"""


def release(
    folder: Path,
    query: type = ClippedSums,
    page: str = TOY_PAGE,
    catalogue: dict[str, Release] | None = None,
    **changes: Any,
) -> ReleaseDraft:
    entry = Release(
        "clipped_sums", "samples", "sum of samples in a ball", query, GAUSSIAN, SPHERICAL_VECTOR,
    )  # fmt: skip
    entry = replace(entry, **changes)
    text = page.format(module=query.__module__, name=query.__name__)
    (folder / "clipped_sums.md").write_text(text, encoding="utf-8")
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20, 3, 2)) * 10 ** rng.uniform(-2, 2, (20, 3, 1))
    neighbours = [(rows[0], np.vstack([rows[0][:2], other[2:]])) for other in rows[1:]]
    up = np.array([[0.0, 9.0], [9.0, 0.0]])
    neighbours.insert(0, (up, up * [[1], [-1]]))
    return ReleaseDraft(
        entry, {entry.name: entry} if catalogue is None else catalogue, [query(1.5), query(0.2)],
        lambda rows: SampleChunk(as_samples(rows)), neighbours, folder,
    )  # fmt: skip


def half(value: np.ndarray, sensitivity: float, *rest: Any) -> np.ndarray:
    return GAUSSIAN.law(value, sensitivity / 2, *rest)


@pytest.mark.parametrize(
    ("step", "changes"),
    [
        ("query_is_frozen_and_bounded", {"query": Thawed}),
        ("chunks_add_up", {"query": Means}),
        ("neighbours_stay_within_the_sensitivity", {"query": ForgetsSigns}),
        ("entry_has_laws_that_the_query_bounds", {"pure": LAPLACE}),
        ("page_states_what_the_code_computes", {"page": TOY_PAGE.replace("2 * C", "C")}),
        ("audit_finds_what_is_claimed", {"gaussian": replace(GAUSSIAN, law=half)}),
        ("catalogue_lists_it", {"catalogue": {}}),
        (None, {}),
    ],
)
def test_first_missing_step_of_a_release(step: Any, changes: dict[str, Any], tmp_path: Any) -> None:
    assert first_missing("A new release", release(tmp_path, **changes)) == step


# A new mechanism: the Gaussian and Laplace laws, written again and written wrong.


def rounded(value: Any, sensitivity: float, mu: float, noise: Any) -> Any:
    return noise.gaussian(value / sensitivity, mu) * sensitivity


def five_percent_less(value: Any, sensitivity: float, mu: float, noise: Any) -> Any:
    return noise.gaussian(value / sensitivity, mu / 0.95) * sensitivity


def in_place(value: Any, sensitivity: float, mu: float, noise: Any) -> Any:
    value += rounded(np.zeros_like(value), sensitivity, mu, noise)
    return value


def in_doubles(value: Any, sensitivity: float, mu: float, noise: Any) -> Any:
    return value + noise.standard_normal(value.size) * sensitivity / mu


NEW = Mechanism("gaussian", "l2", rounded)


def mechanism(seed: int, **changes: Any) -> MechanismDraft:
    return MechanismDraft(
        **{"mechanism": NEW, "law": stats.norm, "spends": "mu", **changes}, seed=seed
    )


@pytest.mark.parametrize(
    ("step", "changes"),
    [
        ("spends_its_part_of_a_cost", {"spends": "epsilon"}),
        ("reports_the_deviation_of_its_law", {"mechanism": replace(NEW, norm="l1")}),
        ("keeps_the_value_where_no_noise_is_asked", {"mechanism": replace(NEW, law=in_place)}),
        ("follows_its_law_at_every_scale", {"mechanism": replace(NEW, law=five_percent_less)}),
        ("shows_no_digit_below_its_step", {"mechanism": replace(NEW, law=in_doubles)}),
        ("says_how_far_the_program_is_from_its_law", {"proved": False}),
        (None, {}),
        (None, {"mechanism": LAPLACE, "law": stats.laplace, "spends": "epsilon"}),
    ],
)
def test_first_missing_step_of_a_mechanism(step: Any, changes: dict[str, Any], seed: int) -> None:
    assert first_missing("A new mechanism", mechanism(seed, **changes)) == step


# A new estimator: the second moment of samples in a ball.


@dataclass(kw_only=True)
class SavedMoment(SavedState):
    layout = {"n_features_in_": "d", "moment_": "dd"}  # noqa: RUF012

    moment_: np.ndarray[Any, np.dtype[np.float64]]


class SecondMoment(PrivateEstimatorMixin, BaseEstimator):
    """Second moment of samples in a ball.

    Parameters
    ----------
    radius : float, default=1.0
        Euclidean norm to which samples are clipped.
    """

    _own_constraints = {"radius": [Number(0.1, 100.0)]}  # noqa: RUF012
    _saved = SavedMoment

    def __init__(
        self, radius=1.0, *, epsilon=1.0, delta=1e-6, accountant=None, random_state=None, verbose=0
    ):
        self.radius = radius
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> "SecondMoment":
        self._check_parameters()
        return self._fit(X)

    def _fit(self, X: Any) -> "SecondMoment":
        checked = self._validation_copy()
        samples = as_samples(checked_table(checked, X, reset=True))
        chunks = SampleChunks(samples, *samples.shape)
        plan = ReleasePlan.split(self.epsilon, self.delta, {"second_moments": 1.0})
        return self._run(PlannedFit(DataCurator, chunks, plan, self._recipe, columns_of(checked)))

    def _recipe(self, curator: DataCurator) -> Fitted:
        query = SecondMoments(LiftedBall(self.radius))
        return Fitted({"moment_": curator.release("second_moments", query)})


def broken(**parts: Any) -> type:
    """The estimator with some of its parts replaced."""
    return type("Broken", (SecondMoment,), {"__doc__": SecondMoment.__doc__, **parts})


def stores_another(self, radius=1.0, *, epsilon=1.0, delta=1e-6, accountant=None, random_state=0):
    SecondMoment.__init__(self, 2 * radius, epsilon=epsilon, delta=delta, accountant=accountant)


def checks_late(self: Any, X: Any, y: Any = None) -> Any:
    self._fit(X)
    return SecondMoment.fit(self, X)


def forgets_the_charge(self: Any, *args: Any, **options: Any) -> Any:
    return PrivateEstimatorMixin._open_curator(self, *args, **options, charge=False)


def writes_first(self: Any, X: Any) -> Any:
    self.n_features_in_ = np.shape(X)[1]
    return SecondMoment._fit(self, X)


def publishes_early(self: Any, curator: DataCurator) -> Fitted:
    fitted = SecondMoment._recipe(self, curator)
    self._publish(fitted.attributes)
    return fitted


def leaks(self: Any, curator: DataCurator) -> Fitted:
    fitted = SecondMoment._recipe(self, curator)
    largest = max(float(np.abs(chunk.X).max()) for chunk in curator._read())
    return Fitted({**fitted.attributes, "largest_": largest})


def seeds_its_noise(self: Any, X: Any) -> Any:
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(0):
        return SecondMoment._fit(self, X)


def ignores_its_radius(self: Any, curator: DataCurator) -> Fitted:
    query = SecondMoments(LiftedBall(1.0))
    return Fitted({"moment_": curator.release("second_moments", query)})


def forgets_its_radius(self: Any, path: Path) -> None:
    SecondMoment().fit(SAMPLES).save(path)


FLAWS = {
    "A new parameter": {
        "parameter_is_declared": {"_own_constraints": {}},
        "parameter_is_documented": {"__doc__": "Second moment of samples in a ball."},
        "parameter_is_validated": {"fit": checks_late},
        "parameter_is_used": {"_recipe": ignores_its_radius},
        "parameter_is_saved": {"save": forgets_its_radius},
        None: {},
    },
    "A new estimator": {
        "clones_with_its_parameters": {"__init__": stores_another},
        "refuses_wrong_parameters_unspent": {"fit": checks_late},
        "charges_its_plan_once": {"_open_curator": forgets_the_charge},
        "changes_nothing_where_it_is_refused": {"_fit": writes_first},
        "changes_nothing_where_it_fails": {"_recipe": publishes_early},
        "shows_nothing_but_releases": {"_recipe": leaks},
        "draws_fresh_noise": {"_fit": seeds_its_noise},
        "saves_and_loads": {"_saved": SavedState},
        None: {},
    },
}


@pytest.mark.parametrize(("title", "step"), [(t, step) for t in FLAWS for step in FLAWS[t]])
def test_first_missing_step_of_an_estimator(title: str, step: Any, tmp_path: Path) -> None:
    X, other = np.random.default_rng(0).standard_normal((2, 60, 3))
    kind = broken(**FLAWS[title][step])
    draft = EstimatorDraft(kind, X, other, {"radius": -1.0}, tmp_path, "radius", 0.5)
    assert first_missing(title, draft) == step


# Those that take one table; what is replayed are answers, and a vocabulary is none.
OF_THE_PACKAGE = {
    PrivateSpectralLDA: (COUNTS, COUNTS[::-1] * 2, {"n_components": 0}),
    PrivateTensorPowerMethod: (SAMPLES, 3 * SAMPLES[::-1], {"n_components": 0}),
}


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
@pytest.mark.parametrize("kind", OF_THE_PACKAGE)
def test_estimators_of_the_package_follow_the_list(kind: type, tmp_path: Path) -> None:
    X, other, wrong = OF_THE_PACKAGE[kind]
    draft = EstimatorDraft(
        lambda **more: kind(**{**start_of(kind), **more}), X, other, wrong, tmp_path
    )
    assert first_missing("A new estimator", draft) is None
