"""What a paper claims for an algorithm, and what is true of it."""

from dataclasses import dataclass

__all__ = ["Claim"]


@dataclass(frozen=True)
class Claim:
    """Privacy claimed in print, and the verdict.

    Attributes
    ----------
    algorithm : str
        The algorithm, with its paper.
    epsilon, delta : float
        Guarantee claimed for the parameters in use.
    neighbours : str
        Data sets between which it is claimed.
    exact_epsilon : float
        Smallest epsilon that the noise as computed here gives at ``delta``, by
        exact composition; infinity where it gives none.
    verdict : str
        What holds, what does not, and why.
    counterpart : str
        What to use instead.

    Examples
    --------
    >>> claim = Claim("X (a paper)", 1.0, 1e-6, "one document", 0.5, "Holds.", "Y")
    >>> claim.holds
    True
    """

    algorithm: str
    epsilon: float
    delta: float
    neighbours: str
    exact_epsilon: float
    verdict: str
    counterpart: str

    @property
    def holds(self) -> bool:
        """Whether the noise as computed here is enough for the epsilon claimed."""
        return self.exact_epsilon <= self.epsilon

    def __str__(self) -> str:
        answer = "gives" if self.holds else "FAILS: it gives"
        return (
            f"{self.algorithm}: claims ({self.epsilon:g}, {self.delta:g}) for {self.neighbours}; "
            f"the noise {answer} epsilon {self.exact_epsilon:.4g}. {self.verdict} "
            f"Sound counterpart: {self.counterpart}."
        )
