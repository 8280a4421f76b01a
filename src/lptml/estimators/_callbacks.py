"""Callbacks: the user's own ``callback=``, and those of scikit-learn 1.9 and later (``set_callbacks``).

Each improvement of the metric is one task of scikit-learn's callback tree, below the task "fit". Earlier
releases of scikit-learn have no callbacks; there ``set_callbacks`` does not exist and the rest is the same.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

from lptml.estimators._inputs import FloatArray

_module: Any = None
if importlib.util.find_spec("sklearn.callback") is not None:
    _module = importlib.import_module("sklearn.callback")


class _NoCallbacks:
    """Stands for scikit-learn's CallbackSupportMixin where there is none."""


#: Base class that gives an estimator ``set_callbacks`` where scikit-learn has it.
CallbackSupport: Any = _NoCallbacks if _module is None else _module.CallbackSupportMixin


def with_callbacks(fit: Any) -> Any:
    """Decorate ``fit`` so that callbacks are torn down however it ends."""
    return fit if _module is None else _module.with_callbacks(fit)


class Announcer:
    """Passes the news of one fit on to the user's callback and to scikit-learn's.

    Parameters
    ----------
    estimator : estimator
        The estimator being fitted.
    callback : callable or None
        The user's own.
    data : dict
        X, y and metadata of the fit, for scikit-learn's callbacks.
    metric : callable
        Turns a metric that the learner reports into one of the features.
    components : callable
        Turns it into ``components_``.
    """

    def __init__(
        self,
        estimator: Any,
        callback: Callable[..., Any] | None,
        data: dict[str, Any],
        metric: Callable[[FloatArray], FloatArray],
        components: Callable[[FloatArray], FloatArray],
    ) -> None:
        self.estimator, self.callback, self.data = estimator, callback, data
        self.metric, self.components = metric, components
        self.context: Any = None

    def begin(self) -> None:
        """Announce the fit."""
        if getattr(self.estimator, "_skl_callbacks", None) and _module is not None:
            self.context = self.estimator._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    @property
    def wanted(self) -> bool:
        """Whether anybody listens."""
        return self.callback is not None or self.context is not None

    def __call__(self, cost: float, A: FloatArray) -> bool:
        """Announce a better metric; return whether somebody asks to stop."""
        stop = bool(self.callback(cost, self.metric(A))) if self.callback is not None else False
        if self.context is not None:
            task = self.context.subcontext(task_name="improvement")
            task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
            stop |= task.call_on_fit_task_end(
                estimator=self.estimator,
                reconstruction_attributes=lambda: {"components_": self.components(A)},
                **self.data,
            )
        return stop

    def end(self) -> None:
        """Announce that the estimator is fitted."""
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.estimator, reconstruction_attributes={}, **self.data
            )
