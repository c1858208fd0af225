"""Measurements behind the project's claims; run with ``python -m benchmarks``."""

import os

# Before numpy loads: BLAS reads these once.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "2")
