"""Whether what a fit needs for its public shape fits into memory at all."""

import os

__all__ = ["check_memory", "memory_size"]

# Bytes where the system does not tell: beyond what is common.
UNKNOWN_SIZE = 2.0**37


def memory_size() -> float:
    """Bytes of memory that this process may use at most."""
    sizes = [UNKNOWN_SIZE]
    if hasattr(os, "sysconf"):
        sizes = [float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))]
    try:
        import resource
    except ImportError:  # not on Windows
        return sizes[0]
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        sizes.append(float(limit))
    return min(sizes)


def check_memory(numbers: float, what: str, advice: str) -> None:
    """Refuse what cannot fit into memory, before anything is charged.

    Parameters
    ----------
    numbers : float
        Least count of double-precision numbers that are needed at a time; public.
    what : str
        What needs them, in public numbers.
    advice : str
        What to do.

    Raises
    ------
    ValueError
        If they need more than there is.

    Examples
    --------
    >>> check_memory(1e30, "A core of 1e+30 numbers", "Ask for a smaller rank.")
    Traceback (most recent call last):
    ...
    ValueError: A core of 1e+30 numbers needs at least 8e+21 GB of memory; there are ...
    """
    size = memory_size()
    if 8 * numbers > size:
        raise ValueError(
            f"{what} needs at least {8e-9 * numbers:.3g} GB of memory; there are "
            f"{1e-9 * size:.3g}. Nothing was charged for this fit. {advice}"
        )
