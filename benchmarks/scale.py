"""Topics of more documents than a process should hold: a cluster of two against local chunks.

Files of 50,000 documents of ten words each, 20,000 words, 20 topics, epsilon = 1, seed 0. Every
fit runs in a process of its own: over the files one after the other (`local`), on a
`LocalCluster` of two processes with 2 GiB each (`cluster`), and on one that loses a worker by
SIGKILL at the third reading of the first file (`killed`). CPU seconds are those of client and
workers together, imports and start not counted; a killed worker takes its own with it.

    python -m benchmarks.scale FOLDER cluster 200000

runs one of them, and `allocator` in the place of a way one EM step under several settings of
the C library's.
"""

import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.cluster import KEPT, QUIET, cpu, on_cluster
from benchmarks.peak_memory import peak
from benchmarks.report import Report
from benchmarks.scale_ratings import measure_ratings
from benchmarks.seeding import reproducible_noise
from sktensor_dp import BudgetAccountant, PrivateSpectralLDA
from sktensor_dp.data.counts import CountChunk
from sktensor_dp.queries.expected_counts import ExpectedCounts

__all__ = ["run"]

AT_ONCE, LENGTH, N_WORDS, N_TOPICS = 50_000, 10, 20_000, 20
SIZES, KILLED_AT = (100_000, 400_000, 2_000_000), 400_000
QUICK = (100_000, 200_000)
MEMORY = 2**31
WAYS = {
    "local": "local chunks", "cluster": "cluster of two",
    "killed": "cluster of two that loses a worker at the third reading of the first file",
}  # fmt: skip


class Files:
    """Documents of files, one file after the other."""

    def __init__(self, folder: Path, n: int) -> None:
        self.paths = paths_of(folder, n)

    def __iter__(self) -> Iterator[sp.csr_matrix]:
        return map(sp.load_npz, self.paths)


def paths_of(folder: Path, n: int) -> list[Path]:
    return [folder / f"{number}.npz" for number in range(n // AT_ONCE)]


def write_documents(folder: Path, n: int) -> None:
    """Documents of one topic each, whose words follow Zipf's law over a tenth of all."""
    rng = np.random.default_rng(0)
    words = np.stack([rng.permutation(N_WORDS)[: N_WORDS // 10] for _ in range(N_TOPICS)])
    law = np.cumsum(1 / np.arange(1, words.shape[1] + 1))
    for path in paths_of(folder, n):
        topics = rng.integers(N_TOPICS, size=AT_ONCE)
        ranks = np.searchsorted(law, law[-1] * rng.random((AT_ONCE, LENGTH)))
        columns = words[topics[:, None], ranks].ravel()
        ends = np.arange(0, AT_ONCE * LENGTH + 1, LENGTH)
        X = sp.csr_matrix((np.ones(columns.size), columns, ends), (AT_ONCE, N_WORDS))
        X.sum_duplicates()
        sp.save_npz(path, X, compressed=False)


def read(path: Path, marker: Path | None) -> sp.csr_matrix:
    """Documents of a file; with a marker, the third reading of the first kills its worker."""
    if marker is not None and path.name == "0.npz":
        with marker.with_suffix(".reads").open("a", encoding="ascii") as file:
            file.write("x")
            n_reads = file.tell()
        if n_reads >= 3 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return sp.load_npz(path)


def fit(folder: Path, way: str, n: int) -> dict[str, Any]:
    """Fit by one way; what it took and what it found."""
    budget = BudgetAccountant(1.0, 1e-6)
    model = PrivateSpectralLDA(N_TOPICS, epsilon=1.0, accountant=budget, random_state=0)
    with reproducible_noise(0):
        if way == "local":
            cpu_before, before = cpu(), time.perf_counter()
            model.fit_chunks(Files(folder, n), n_samples=n, n_features=N_WORDS)
            took = {"cpu": cpu() - cpu_before, "wall": time.perf_counter() - before}
        else:
            X = partitions(folder, way, n)
            took = on_cluster(lambda: model.fit(X), MEMORY)
    np.save(folder / f"{way}.npy", model.components_)
    rounds = sum(row.uses for row in model.privacy_report_.rows)
    return {**took, "client": peak(), "rounds": rounds, "spent": budget.total()[0]}


def partitions(folder: Path, way: str, n: int) -> Any:
    """The files as a Dask array; with `killed`, one of them kills a worker."""
    import dask
    import dask.array as da

    marker = folder / "killed" if way == "killed" else None
    load = dask.delayed(read)
    blocks = [
        da.from_delayed(load(path, marker), (AT_ONCE, N_WORDS), dtype=np.float64)
        for path in paths_of(folder, n)
    ]
    return da.concatenate(blocks)


def allocator(folder: Path) -> None:
    """Cost of one EM step, by what the C library was told about memory."""
    settings: tuple[dict[str, str], ...] = (
        {},
        {"MALLOC_TRIM_THRESHOLD_": "65536"},
        {name: str(size) for name, size in KEPT.items()},
    )
    write_documents(folder, AT_ONCE)
    command = [sys.executable, "-m", "benchmarks.scale", str(folder), "em-step", "0"]
    for setting in settings:
        subprocess.run(command, check=True, env={**os.environ, **setting})


def em_step(folder: Path) -> None:
    """Print seconds in the program and in the system, and page faults; medians of five."""
    X = sp.load_npz(folder / "0.npz")[: 2**14]
    topics = np.random.default_rng(0).dirichlet(np.ones(N_WORDS), N_TOPICS)
    query = ExpectedCounts(topics, np.full(N_TOPICS, 1 / N_TOPICS), False, 5.0)
    took = []
    for _ in range(6):
        before = resource.getrusage(resource.RUSAGE_SELF)
        query.total(CountChunk(X))
        after = resource.getrusage(resource.RUSAGE_SELF)
        names = ("ru_utime", "ru_stime", "ru_minflt")
        took.append([getattr(after, name) - getattr(before, name) for name in names])
    user, system, faults = np.median(took[1:], axis=0)
    told = {name: value for name, value in os.environ.items() if name.startswith("MALLOC_")}
    print(f"{told}: {user:.3f} and {system:.3f} s, {faults:.0f} page faults", flush=True)


def measured(folder: Path, way: str, n: int) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", str(folder), way, str(n)]
    root = Path(__file__).parent.parent
    answer = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=root, env={**os.environ, **QUIET}
    )
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def run(report: Report) -> None:
    """Print CPU, memory and agreement at each size, and judge the bars."""
    sizes = QUICK if report.quick else SIZES
    rows: list[list[Any]] = []
    took: dict[tuple[str, int], dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_documents(folder, max(sizes))
        killed_at = QUICK[-1] if report.quick else KILLED_AT
        for n in sizes:
            for way in list(WAYS)[: 3 if n == killed_at else 2]:
                found = took[way, n] = measured(folder, way, n)
                apart = np.abs(np.load(folder / f"{way}.npy") - np.load(folder / "local.npy"))
                rows.append([
                    *(f"{n:,}", WAYS[way], f"{found['cpu']:.0f}", f"{found['client'] / 2**20:.0f}"),
                    f"{found['worker'] / 2**20:.0f}" if "worker" in found else "",
                    found["rounds"],
                ])  # fmt: skip
                report.note(f"{n:,} {way}: {found['wall']:.0f} s, apart by {apart.max():.3g}")
    report.table(
        "Documents of ten words, 20,000 words, 20 topics, epsilon = 1",
        ["documents", "way", "processor seconds", "client, MiB", "largest worker, MiB", "rounds"],
        rows,
        file="scale",
        how="noise seed 0, one run on two cores",
    )
    most, least = max(sizes), min(sizes)
    cluster, local = took["cluster", most], took["local", most]
    report.bar("CPU of the cluster over that of local chunks", cluster["cpu"] / local["cpu"], 1.4)
    report.bar("peak of the client, GiB", cluster["client"] / 2**30, 1.0)
    report.bar("peak of a worker, GiB", cluster["worker"] / 2**30, 2.0)
    slope = math.log(cluster["cpu"] / took["cluster", least]["cpu"]) / math.log(most / least)
    report.bar("slope of CPU in documents", slope, 1.15)
    spent = next(found["spent"] for (way, _), found in took.items() if way == "killed")
    report.bar("epsilon spent by a fit that lost a worker", spent, 1.0 + 1e-9)
    measure_ratings(report)


if __name__ == "__main__":
    if sys.argv[2] == "allocator":
        allocator(Path(sys.argv[1]))
    elif sys.argv[2] == "em-step":
        em_step(Path(sys.argv[1]))
    else:
        print(json.dumps(fit(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
