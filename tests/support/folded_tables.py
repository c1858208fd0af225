"""Tables of few columns whose entries are fitted and folded in, to follow what is released."""

from typing import Any

import numpy as np

SHAPE = (80, 6)
X = np.argwhere(np.random.default_rng(2).random(SHAPE) < 0.8)


def values(kind: str) -> np.ndarray:
    rng = np.random.default_rng(1)
    return {
        "components": rng.standard_normal(80)[X[:, 0]]
        * np.array([1, -1, 1, 1, -1, 0.5])[X[:, 1]],
        "noise": rng.standard_normal(len(X)),
        "zeros": np.zeros(len(X)),
        "enormous": rng.choice([-1, 1], len(X)) * 10 ** rng.uniform(0, 308, len(X)),
        "tiny": rng.standard_normal(len(X)) * 10 ** rng.uniform(-320, 0, len(X)),
    }[kind]  # fmt: skip


def fit_and_use(release: str, estimator: Any, data: Any) -> Any:
    estimator.fit(*data)
    assert release in [row.name for row in estimator.privacy_report_.rows]
    own = estimator.fold_in([[1, 2], [4, 5]], [2.0, 0.5])
    estimator.used_ = [own.predict([[1, 0], [4, 1]]), estimator.predict(X), estimator.complete()]
    return estimator
