"""Peak memory of one fit in a process of its own.

    python -m benchmarks.peak_memory counts.npz 20 1.0 auto

prints the resident memory before the fit and its peak, in bytes.
"""

import math
import subprocess
import sys
import tempfile
from pathlib import Path

import scipy.sparse as sp

from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateSpectralLDA

__all__ = ["of_fit"]


def of_fit(X: sp.csr_matrix, n_topics: int, epsilon: float, refinements: str) -> tuple[int, int]:
    """Resident memory before a fit and at its peak, in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "counts.npz")
        sp.save_npz(path, X)
        command = [sys.executable, "-m", "benchmarks.peak_memory", str(path)]
        command += [str(n_topics), str(epsilon), refinements]
        root = Path(__file__).parent.parent
        answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    before, peak = answer.stdout.split()
    return int(before), int(peak)


def peak() -> int:
    """Largest resident size of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # The kernel's ru_maxrss survives exec, and so would be that of the parent.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    path, n_topics, epsilon, refinements = sys.argv[1:]
    X = sp.load_npz(path)
    before = peak()
    with reproducible_noise(0):
        PrivateSpectralLDA(
            int(n_topics),
            epsilon=math.inf if epsilon == "inf" else float(epsilon),
            n_refinements="auto" if refinements == "auto" else int(refinements),
            random_state=0,
        ).fit(X)
    print(before, peak())


if __name__ == "__main__":
    main()
