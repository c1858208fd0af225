"""Callbacks of scikit-learn that follow the releases of a fit."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from sktensor_dp.privacy.composition import ReleaseRecord
from sktensor_dp.privacy.session import Watcher

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9
    CallbackSupportMixin = with_callbacks = None

HOOKS = ("on_fit_task_begin", "on_fit_task_end")
CALLBACKS = "_skl_callbacks"
# Attribute by which a search or a pipeline passes on the task that a fit belongs to.
PARENT = "_parent_callback_ctx"


def _has_callbacks(estimator: object) -> bool:
    """True, or AttributeError before scikit-learn 1.9: `set_callbacks` then does not exist."""
    if CallbackSupportMixin is None:
        raise AttributeError("callbacks need scikit-learn 1.9 or newer.")
    return True


class Callbacks:
    """Mixin with ``set_callbacks``: callbacks that follow a fit by the names of its releases."""

    @available_if(_has_callbacks)
    def set_callbacks(self, *callbacks: object) -> Self:
        """Set callbacks of scikit-learn that follow the progress of fits.

        Parameters
        ----------
        *callbacks : callbacks
            For example ``sklearn.callback.ProgressBar()``. A fit is a task, and each release in it
            another, by its name in the catalogue.

        Returns
        -------
        self : estimator

        Raises
        ------
        AttributeError
            If scikit-learn is older than 1.9.
        TypeError
            If one is no callback, or asks for data or fitted estimators.

        Notes
        -----
        **Privacy.** Names and numbers of releases are public before a fit begins. A callback
        that asks for ``X``, ``y``, ``metadata`` or ``fitted_estimator`` is refused. Callbacks
        get an unfitted clone in the place of the estimator, and cannot stop a fit: one that
        fails after the charge is warned of. When they are called tells how long releases take
        (running time is not covered).
        """
        for callback in callbacks:
            _check(callback)
        # Called on the class: the estimator does not inherit the other methods of that mixin.
        CallbackSupportMixin.set_callbacks(self, *callbacks)
        return self

    @contextmanager
    def _followed(self, n_releases: int | None) -> "Iterator[Follower]":
        """Show the releases of a session to the callbacks, if there are any."""
        follower = Follower()
        if not getattr(self, CALLBACKS, None):
            yield follower
            return
        unfitted = clone(self)
        unfitted.accountant = None
        if hasattr(self, PARENT):
            setattr(unfitted, PARENT, getattr(self, PARENT))
        # Errors before and in the fit are raised. After it the fit is paid for: those of callbacks
        # are kept for a warning.
        has_run = False
        try:
            try:
                context = CallbackSupportMixin._init_callback_context(
                    unfitted, max_subtasks=n_releases
                )
                context.call_on_fit_task_begin(estimator=unfitted)
                follower.estimator, follower.context = unfitted, context
                try:
                    yield follower
                    has_run = True
                finally:
                    follower.end()
                follower.attempt(context.call_on_fit_task_end)
            finally:
                # Callbacks are torn down when a method with callbacks ends.
                with_callbacks(lambda estimator: None)(unfitted)
        except Exception as error:
            if not has_run:
                raise
            follower.failures[type(error).__name__] = None


class Follower:
    """Calls the callbacks of an estimator, if it has any, for each release of a session."""

    def __init__(self) -> None:
        self.estimator: Any = None
        self.context: Any = None
        self.failures: dict[str, None] = {}  # types of errors, in order
        self._open: Any = None  # task of the last release

    @property
    def watchers(self) -> list[Watcher]:
        """Watchers for the session, which calls `begin` before each release."""
        return [] if self.estimator is None else [self.begin]

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """Warning of callbacks that failed, which does not affect the fit."""
        message = f"A callback failed ({', '.join(self.failures)}); the fit is not affected."
        return (UserWarning(message),) if self.failures else ()

    def begin(self, release: ReleaseRecord, *_: int) -> None:
        """End the task of the last release, and begin that of this one."""
        self.end()
        self._open = self.context.subcontext(task_name=release.name)
        self.attempt(self._open.call_on_fit_task_begin)

    def end(self) -> None:
        """End the task of the last release, if there is one."""
        if self._open is not None:
            last, self._open = self._open, None
            # A request to stop is ignored, as the plan has been paid for.
            self.attempt(last.call_on_fit_task_end)

    def attempt(self, hook: Callable[..., object]) -> None:
        """Call a hook of the callbacks; record an error of theirs and go on."""
        try:
            hook(estimator=self.estimator)
        except Exception as error:
            self.failures[type(error).__name__] = None


def _check(callback: object) -> None:
    """Raise TypeError if a hook of `callback` asks for data or estimators as keywords."""
    for hook in HOOKS:
        method = getattr(callback, hook, None)
        parameters = inspect.signature(method).parameters.values() if callable(method) else ()
        # scikit-learn hands data and estimators to the keyword-only parameters that ask for them.
        asked = [rule.name for rule in parameters if rule.kind is rule.KEYWORD_ONLY]
        if asked:
            raise TypeError(
                f"{type(callback).__name__} cannot follow a private fit: its {hook} asks for "
                f"{', '.join(asked)}. Raw data and what is computed of it before noise are for no "
                "one to see; callbacks are told the names of releases. Score a released model "
                "after its fit, on data of your own or by make_private_scorer."
            )
