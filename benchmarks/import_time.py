"""How long an import takes, beside that of ``sklearn.decomposition``.

    python -m benchmarks.import_time [runs]

prints processor times of fresh interpreters, in turns, and their ratios: of the medians, and of
the least. Compiled files have to be there, as an installation leaves them.
"""

import compileall
import resource
import statistics
import subprocess
import sys
from pathlib import Path

PEER = "import sklearn.decomposition"
OURS = (
    "import sktensor_dp",
    "from sktensor_dp import PrivateSpectralLDA",
    "from sktensor_dp import *",
)
BAR = 1.15


def processor_seconds(statement: str) -> float:
    """Of one interpreter that runs a statement and ends."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(runs: int = 15) -> None:
    compileall.compile_dir(Path(__file__).parents[1] / "sktensor_dp", quiet=1)
    times: dict[str, list[float]] = {statement: [] for statement in (PEER, *OURS)}
    for _ in range(runs):
        for statement, taken in times.items():
            taken.append(processor_seconds(statement))
    for statement in OURS:
        of_medians = statistics.median(times[statement]) / statistics.median(times[PEER])
        of_least = min(times[statement]) / min(times[PEER])
        print(f"{of_medians:.2f} (least {of_least:.2f}; at most {BAR})  {statement}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
