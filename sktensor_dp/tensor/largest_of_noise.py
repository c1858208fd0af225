"""Size of the largest component that noise alone shows."""

import math

# Level at which noise is taken for a component; the Tracy-Widom law of order one, of the largest
# eigenvalue of noise, leaves as much beyond this number.
LEVEL, TRACY_WIDOM = 0.01, 2.02


def largest_of_noise(*lengths: float) -> float:
    """Norm that no component of noise of unit variance exceeds, but with the probability `LEVEL`.

    Noise fills a tensor with modes of these lengths.
    """
    # The largest singular value of a matrix (Johnstone, 2001). Of more modes the first sum bounds
    # the mean of the largest (Chevet, 1978), and fluctuations are smaller.
    roots = [math.sqrt(length) for length in lengths]
    return sum(roots) + TRACY_WIDOM / 2 * sum(1 / root for root in roots) ** (1 / 3)
