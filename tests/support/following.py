"""A callback of scikit-learn that keeps what it is told."""

from typing import Any


class Follower:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.estimators: list[Any] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.told.append(("setup", context.task_name))

    def teardown(self, estimator: Any, context: Any) -> None:
        self.told.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.told.append(("begin", context.task_name))
        self.estimators.append(estimator)

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        self.told.append(("end", context.task_name))
        return True  # asks to stop
