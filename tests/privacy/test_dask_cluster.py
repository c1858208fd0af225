"""On a cluster of two processes: who knows what, what is left behind, and lost workers."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, KilledWorker, LocalCluster
from small_corpora import tiny

from sktensor_dp import (
    BudgetAccountant,
    PrivacyLeakWarning,
    PrivateSpectralLDA,
    unsafe_seeded_noise,
)

N, D, SECRET = 400, 6, 987654321

pytestmark = [pytest.mark.nightly, tiny]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    # Workers that the test kills are started anew, and logs stay in memory.
    with (
        dask.config.set({"distributed.admin.low-level-log-length": 0}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="1GiB"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def documents() -> np.ndarray:
    return np.random.default_rng(0).poisson(1.0, (N, D))


def lazy(X: np.ndarray) -> Any:
    return da.from_array(X, chunks=(100, X.shape[1]))


def topics(**given: Any) -> PrivateSpectralLDA:
    return PrivateSpectralLDA(2, n_refinements=1, random_state=0, **given)


def fitted(model: Any, X: Any, **given: Any) -> Any:
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(0):
        return model.fit(X, **given)


def held(client: Client) -> list[Any]:
    """What workers hold, once they have been told what is not needed any more."""
    for _ in range(100):
        found = client.run(lambda dask_worker: [str(key) for key in dask_worker.data])
        if not any(found.values()):
            return []
        time.sleep(0.05)
    return list(found.values())


# So few documents show topics of twenty of these words.
@pytest.mark.filterwarnings("ignore:X has 20,000 columns")
def test_queries_travel_once_and_leave_nothing(client, monkeypatch):
    """Topics of 20,000 words are 320 kB: tasks name them, and hold no copy."""
    sizes, scattered = [], []
    compute, scatter = client.compute, client.scatter

    def recorded(lazy: Any, **given: Any) -> Any:
        graph = dict(lazy.__dask_graph__())
        asked = [task for key, task in graph.items() if str(key).startswith(("_sum_of_part", "_m"))]
        assert len(asked) == 4 + 1
        sizes.extend(len(cloudpickle.dumps(task)) for task in asked)
        return compute(lazy, **given)

    def counted(data: Any, **given: Any) -> Any:
        scattered.append(given)
        return scatter(data, **given)

    words = da.random.default_rng(0).poisson(0.001, (N, 20_000), chunks=(100, 20_000))
    with monkeypatch.context() as patch:
        patch.setattr(client, "compute", recorded)
        patch.setattr(client, "scatter", counted)
        fitted(topics(), words)
    assert max(sizes) < 5000
    assert all(given["broadcast"] for given in scattered)
    assert len(scattered) * 5 == len(sizes)
    fitted(topics(), lazy(documents()), groups=np.arange(N) // 4, n_samples=N // 4)
    assert held(client) == []


def killing(block: np.ndarray, marker: str, block_info: Any = None) -> np.ndarray:
    """Kill the worker that reads the third block, once; after it was read twice."""
    if block_info[0]["chunk-location"][0] == 2:
        reads = Path(marker).with_suffix(".reads")
        with reads.open("a", encoding="ascii") as file:
            file.write("x")
        if reads.stat().st_size >= 3 and not Path(marker).exists():
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no such signal")
def test_a_killed_worker_costs_nothing_twice(client, tmp_path):
    """The third release of the fit loses a worker; the fit goes on to the same result."""
    X, marker, budget = lazy(documents()), tmp_path / "killed", BudgetAccountant(1.0, 1e-6)
    killed = X.map_blocks(killing, str(marker), meta=np.zeros((0, 0), int))
    found, unhurt = fitted(topics(accountant=budget), killed), fitted(topics(), X)
    assert marker.exists()
    np.testing.assert_array_equal(found.components_, unhurt.components_)
    assert budget.total()[0] == pytest.approx(1.0)
    uses = ([row.uses for row in one.privacy_report_.rows] for one in (found, unhurt))
    assert next(uses) == next(uses)


def failing(block: np.ndarray) -> np.ndarray:
    raise KeyError(f"row {block[0, 0]} {SECRET}")


@pytest.mark.parametrize("fault", ["negative", "raises"])
def test_faults_show_no_data_and_keep_the_charge(client, fault):
    X = documents()
    X[250] = -SECRET if fault == "negative" else X[250]
    Z = lazy(X)
    if fault == "raises":
        Z = Z.map_blocks(failing, meta=np.zeros((0, 0), int))
    budget = BudgetAccountant(1.0, 1e-6)
    model = topics(accountant=budget)
    with pytest.raises((ValueError, LookupError)) as caught:
        model.fit(Z)
    assert str(SECRET) not in repr(caught.value) + repr(caught.value.__context__)
    assert budget.total()[0] == pytest.approx(1.0)
    assert not hasattr(model, "components_")
    if fault == "negative":
        # What the library refuses is not raised on workers, whose logs quote arguments.
        logs = repr(client.get_worker_logs())
        assert "Compute Failed" not in logs
        assert str(SECRET) not in logs
    assert held(client) == []


class Lost:
    """What becomes of a sum whose worker was lost once too often."""

    def result(self) -> Any:
        raise KilledWorker("a key", "a worker", 3)

    def release(self) -> None:
        pass


def test_workers_that_die_again_and_again_end_the_fit_cleanly(client, monkeypatch):
    budget = BudgetAccountant(1.0, 1e-6)
    model = topics(accountant=budget)
    monkeypatch.setattr(client, "compute", lambda lazy: Lost())
    with pytest.raises(RuntimeError, match=r"Workers were lost \(KilledWorker\).* stays charged"):
        model.fit(lazy(documents()))
    assert budget.total()[0] == pytest.approx(1.0)
    assert not hasattr(model, "components_")
