"""Callbacks of scikit-learn, where it has them: they are told of progress, and of nothing else."""

import inspect
from collections.abc import Callable
from typing import Any, Self, TypeVar

from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9
    CallbackSupportMixin = with_callbacks = None

Result = TypeVar("Result")

HOOKS = ("on_fit_task_begin", "on_fit_task_end")
CALLBACKS = "_skl_callbacks"
# Where a search or a pipeline leaves the task that a fit is part of.
PARENT = "_parent_callback_ctx"


def _known(estimator: Any) -> bool:
    if CallbackSupportMixin is None:
        raise AttributeError("callbacks need scikit-learn 1.9 or newer.")
    return True


class Callbacks:
    """``set_callbacks`` of a private estimator."""

    @available_if(_known)
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set callbacks of scikit-learn that follow the progress of fits.

        Parameters
        ----------
        *callbacks : callbacks
            Such as ``sklearn.callback.ProgressBar()``. A fit is a task, and each release in it
            another, by its name in the catalogue.

        Returns
        -------
        self : estimator
            The estimator.

        Raises
        ------
        AttributeError
            If scikit-learn is older than 1.9.
        TypeError
            If one is no callback, or asks for data or fitted estimators.

        Notes
        -----
        **Privacy.** Names and numbers of releases are public before a fit begins. A callback
        that asks for ``X``, ``y``, ``metadata`` or ``fitted_estimator`` is refused: it would see
        what the fit protects, or what was computed before noise. Callbacks get a clone, which
        has parameters and nothing else, in the place of the estimator, and cannot stop a fit.
        When they are called tells how long releases take (running time is not covered).
        """
        for callback in callbacks:
            _check(callback)
        # On behalf of an estimator that does not inherit what else the mixin writes.
        CallbackSupportMixin.set_callbacks(self, *callbacks)
        return self

    def _followed(
        self, run: Callable[[Callable[[str], None]], Result], n_releases: int | None
    ) -> Result:
        """Result of `run`, which is handed a function to call with the name of each release."""
        shown = clone(self)
        shown.accountant = None
        if hasattr(self, PARENT):
            shown._parent_callback_ctx = getattr(self, PARENT)

        def followed(estimator: Any) -> Result:
            context = CallbackSupportMixin._init_callback_context(
                estimator, max_subtasks=n_releases
            )
            context.call_on_fit_task_begin(estimator=estimator)
            releases = _Releases(estimator, context)
            try:
                result = run(releases.begin)
            finally:
                releases.end()
            context.call_on_fit_task_end(estimator=estimator)
            return result

        return with_callbacks(followed)(shown)


class _Releases:
    """Tasks of callbacks, one for each release."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self._estimator, self._context = estimator, context
        self._task: Any = None

    def begin(self, name: str) -> None:
        self.end()
        self._task = self._context.subcontext(task_name=name)
        self._task.call_on_fit_task_begin(estimator=self._estimator)

    def end(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            # Whether it asks to stop is not heard: the plan has been paid for.
            task.call_on_fit_task_end(estimator=self._estimator)


def _check(callback: Any) -> None:
    """Refuse a callback that asks for more than where a fit is."""
    for hook in HOOKS:
        method = getattr(callback, hook, None)
        asked = inspect.signature(method).parameters.values() if callable(method) else ()
        more = [one.name for one in asked if one.kind is one.KEYWORD_ONLY]
        if more:
            raise TypeError(
                f"{type(callback).__name__} cannot follow a private fit: its {hook} asks for "
                f"{', '.join(more)}. Raw data and what is computed of it before noise are for no "
                "one to see; callbacks are told the names of releases. Score a released model "
                "after its fit, on data of your own or by make_private_scorer."
            )
