"""The power method on answers that come one batch at a time."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sktensor_dp.tensor._random import RandomState, as_generator
from sktensor_dp.tensor.oracle import Floats, check_at_least, check_components

GENERATOR = "PCG64"


class OnlinePowerMethod:
    """Robust tensor power method that asks and is told.

    Each answer may come from another batch of samples or carry fresh noise: nothing
    is asked twice. A component takes ``max_iter + 1`` answers for all its starts at
    once; the last one gives T(u, u, u), by which the best start is kept, and one more
    iterate of it. Once all components are found, further answers polish them: each
    is one step for all components, averaged over the steps so far.

    Memory is O(d (k + L)): components found, and starts.

    Parameters
    ----------
    dim : int
        Length d of a mode.
    n_components : int
        Number k of components, at most d.
    n_restarts : int, default=10
        Starts per component (L).
    max_iter : int, default=10
        Iterations per component (R).
    random_state : int, Generator, RandomState or None, default=None
        Seeds the starts.

    Attributes
    ----------
    n_answers : int
        Number of answers told so far.
    n_answers_needed : int
        Number after which all components are found: ``k (max_iter + 1)``.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    Y. Wang, A. Anandkumar, "Online and differentially-private tensor decomposition",
    NIPS 2016, Algorithm 2, with the projections of its step 7 taken of the unit
    iterates, and the eigenvalue of the iterate it belongs to.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp.tensor import symmetric_outer_sum, tensor_oracle
    >>> from sktensor_dp.tensor.online import OnlinePowerMethod
    >>> oracle = tensor_oracle(symmetric_outer_sum([3.0, 2.0], np.eye(2)))
    >>> method = OnlinePowerMethod(2, 2, random_state=0)
    >>> while not method.is_complete:
    ...     method.tell(oracle(method.ask()))
    >>> weights, vectors = method.components()
    >>> weights.round(6), np.abs(vectors).round(6)
    (array([3., 2.]), array([[1., 0.],
           [0., 1.]]))
    """

    def __init__(
        self,
        dim: int,
        n_components: int,
        *,
        n_restarts: int = 10,
        max_iter: int = 10,
        random_state: RandomState = None,
    ) -> None:
        check_at_least(1, n_restarts=n_restarts, max_iter=max_iter)
        check_components(n_components, dim)
        self.n_answers = 0
        self.n_answers_needed = n_components * (max_iter + 1)
        self._n_components = n_components
        self._n_restarts = n_restarts
        self._max_iter = max_iter
        self._rng = as_generator(random_state)
        self._weights = np.zeros(0)
        self._vectors = np.zeros((0, dim))
        self._polished: Floats | None = None
        self._iteration = 0
        self._starts = self._new_starts()
        self._best: tuple[float, Floats] = (0.0, self._starts[:, 0])

    @property
    def is_complete(self) -> bool:
        """Whether all components are found."""
        return len(self._weights) == self._n_components

    def ask(self) -> Floats:
        """Unit columns u, of shape (d, n), for which T(I, u, u) is wanted next."""
        return self._vectors.T if self.is_complete else self._starts

    def tell(self, answers: Floats) -> None:
        """Take the answers to the last question and move on."""
        self.n_answers += 1
        if self.is_complete:
            self._polish(answers)
        else:
            self._iterate(answers)

    def components(self) -> tuple[Floats, Floats]:
        """Weights, and unit vectors as rows, found so far, the one at work included."""
        weights, vectors = self._weights, self._vectors
        if not self.is_complete:
            weights = np.append(weights, self._best[0])
            vectors = np.vstack([vectors, self._best[1]])
        order = np.argsort(-weights, kind="stable")
        return weights[order], vectors[order]

    def state(self) -> dict[str, Any]:
        """Progress so far as plain values, of which :meth:`from_state` goes on."""
        rng: Mapping[str, Any] = self._rng.bit_generator.state
        if rng["bit_generator"] != GENERATOR:
            raise ValueError(f"random_state must be of {GENERATOR}; got {rng['bit_generator']}.")
        value, vector = self._best
        return {
            "n_answers": self.n_answers, "n_components": self._n_components,
            "n_restarts": self._n_restarts, "max_iter": self._max_iter,
            "iteration": self._iteration, "weights": self._weights, "vectors": self._vectors,
            "starts": self._starts, "polished": self._polished, "best_value": value,
            "best_vector": vector,
            "generator": [*rng["state"].values(), rng["has_uint32"], rng["uinteger"]],
        }  # fmt: skip

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "OnlinePowerMethod":
        """Method that goes on from where another was."""
        _check_state(state)
        rng = np.random.Generator(np.random.PCG64(0))
        method = cls(
            len(state["best_vector"]), state["n_components"], n_restarts=state["n_restarts"],
            max_iter=state["max_iter"], random_state=rng,
        )  # fmt: skip
        value, inc, has_uint32, uinteger = state["generator"]
        rng.bit_generator.state = {
            "bit_generator": GENERATOR, "state": {"state": value, "inc": inc},
            "has_uint32": has_uint32, "uinteger": uinteger,
        }  # fmt: skip
        method.n_answers, method._iteration = state["n_answers"], state["iteration"]
        method._weights, method._vectors = state["weights"], state["vectors"]
        method._starts, method._polished = state["starts"], state["polished"]
        method._best = (state["best_value"], state["best_vector"])
        return method

    def _new_starts(self) -> Floats:
        starts = self._rng.standard_normal((self._vectors.shape[1], self._n_restarts))
        return starts / np.linalg.norm(starts, axis=0)

    def _iterate(self, answers: Floats) -> None:
        deflation = self._weights[:, None] * (self._vectors @ self._starts) ** 2
        answers = answers - self._vectors.T @ deflation
        values = np.einsum("ij,ij->j", self._starts, answers)
        moved = _unit(answers, self._starts)
        best = int(np.argmax(values))
        self._best = (float(values[best]), moved[:, best])
        self._iteration += 1
        if self._iteration <= self._max_iter:
            self._starts = moved
            return
        self._weights = np.append(self._weights, self._best[0])
        self._vectors = np.vstack([self._vectors, self._best[1]])
        self._iteration, self._starts = 0, self._new_starts()

    def _polish(self, answers: Floats) -> None:
        """Average the noise of polishing steps; what they start from is forgotten quadratically."""
        overlaps = (self._vectors @ self._vectors.T) ** 2
        np.fill_diagonal(overlaps, 0.0)
        answers = answers - self._vectors.T @ (self._weights[:, None] * overlaps)
        n_steps = self.n_answers - self.n_answers_needed
        mean = np.zeros_like(answers) if self._polished is None else self._polished
        self._polished = mean + (answers - mean) / n_steps
        vectors = _unit(self._polished, self._vectors.T)
        self._weights = np.einsum("ij,ij->j", vectors, self._polished)
        self._vectors = vectors.T


def _unit(columns: Floats, otherwise: Floats) -> Floats:
    """Columns of length 1; those of length 0 are replaced."""
    norms = np.linalg.norm(columns, axis=0)
    return np.divide(columns, norms, out=otherwise.copy(), where=norms > 0)


def _check_state(state: Mapping[str, Any]) -> None:
    def require(condition: bool, wanted: str) -> None:
        if not condition:
            raise ValueError(f"state must be one that steps lead to: {wanted}.")

    d, n, k = len(state["best_vector"]), len(state["weights"]), state["n_components"]
    per_component = state["max_iter"] + 1
    require(1 <= k <= d and n <= k, "components are at most as many as features")
    require(state["starts"].shape == (d, state["n_restarts"]), "starts fit the features")
    require(state["vectors"].shape == (n, d), "vectors fit the features")
    polished = state["polished"]
    require(polished is None or polished.shape == (d, k), "polished vectors fit")
    require(0 <= state["iteration"] < per_component, "iterations do not exceed max_iter")
    begun = n * per_component + state["iteration"]
    answered = state["n_answers"] >= begun if n == k else state["n_answers"] == begun
    require(answered, "answers are as many as the steps made")
    polishing = state["n_answers"] > k * per_component
    require((polished is not None) == polishing, "polishing follows on the last component")
    value, inc, has_uint32, uinteger = state["generator"]
    words = 0 <= value < 2**128 and 0 <= inc < 2**128 and inc % 2 == 1
    require(words and has_uint32 in (0, 1) and 0 <= uinteger < 2**32, "the generator has one")
