"""What a fit takes on a cluster of two processes."""

import resource
import time
from collections.abc import Callable
from typing import Any

from benchmarks.peak_memory import peak

__all__ = ["KEPT", "QUIET", "cpu", "on_cluster"]

# Idle processes of a cluster take 4 % of a core each, most of it to watch themselves; with
# this 1 %.
QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}
# What nannies tell the C library by themselves makes workers ask for pages at every array. By
# environment variables Dask would read these names in small letters, and nobody ask for them.
KEPT = {"MALLOC_TRIM_THRESHOLD_": 2**28, "MALLOC_MMAP_THRESHOLD_": 2**25}


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def on_cluster(fit: Callable[[], object], memory: int) -> dict[str, Any]:
    """CPU seconds of client and workers, of the clock, bytes at the peak, and what was left."""
    import dask
    from distributed import Client, LocalCluster

    dask.config.set({f"distributed.nanny.pre-spawn-environ.{k}": v for k, v in KEPT.items()})
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": memory}
    with LocalCluster(**options, dashboard_address=":0") as cluster, Client(cluster) as client:
        client.run(_ready)
        workers_before, cpu_before = client.run(cpu), cpu()
        before = time.perf_counter()
        fit()
        wall = time.perf_counter() - before
        used = [after - workers_before.get(at, 0.0) for at, after in client.run(cpu).items()]
        largest = max(client.run(peak).values())
        left = sum(map(len, client.run(_keys).values()))
    return {"cpu": sum(used) + cpu() - cpu_before, "wall": wall, "worker": largest, "left": left}


def _ready() -> None:
    import sktensor_dp  # noqa: F401 (workers import it once, before anything is measured)


def _keys(dask_worker: Any) -> list[str]:
    return [str(key) for key in dask_worker.data]
