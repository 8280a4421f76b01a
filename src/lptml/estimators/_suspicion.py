"""Which training labels a fitted learner distrusts: ``suspicion_`` and ``suspects()``.

Suspicions are found when they are first asked for, so that a fit which nobody asks about pays nothing. Until
then the learner keeps its training data.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from lptml.estimators._inputs import FloatArray


class SuspicionMixin:
    """Suspicions of a learner that defines ``_judge`` and calls ``_remember`` at the end of fit."""

    _training: tuple[Any, ...] | None
    _suspicion: FloatArray | None
    _judge: Callable[..., FloatArray]  # the suspicion of every training label, from what was remembered

    @property
    def suspicion_(self) -> FloatArray:
        """How likely each training label is wrong, from 0 to 1; found when first asked for.

        For labelled points that is :func:`lptml.suspicion` of the training data, for pairs
        :func:`lptml.noise.suspects.pair_suspicion`: probabilities, from models that have not seen the label.
        For triplets and quadruplets it is how strongly the learned metric contradicts them.
        """
        check_is_fitted(self)
        suspicion = self.__dict__.get("_suspicion")
        if suspicion is None:
            training = self.__dict__.get("_training")
            if training is None:
                raise AttributeError("suspicion_ was not asked for before the model was saved")
            suspicion = self._suspicion = self._judge(*training)
        return np.asarray(suspicion, dtype=np.float64)

    @suspicion_.setter
    def suspicion_(self, suspicion: FloatArray) -> None:
        self._suspicion = suspicion

    def suspects(self, n_suspects: int | None = None) -> NDArray[np.intp]:
        """Return the numbers of the training labels to distrust, the most suspicious first.

        Parameters
        ----------
        n_suspects : int, optional
            How many; if not given, those that are more likely wrong than right.

        Returns
        -------
        ndarray of int
            Rows of X for labelled points, numbers of the tuples for the others.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from lptml import LPTML_Supervised
        >>> X, y = load_iris(return_X_y=True)
        >>> y[[3, 120]] = [1, 0]
        >>> model = LPTML_Supervised(max_trials=1, random_state=0).fit(X[::3], y[::3])
        >>> sorted(model.suspects(2).tolist())  # of every third row: 3 and 120
        [1, 40]
        """
        suspicion = self.suspicion_
        ranked = np.argsort(-suspicion, kind="stable")
        if n_suspects is None:
            return ranked[: int((suspicion > 0.5).sum())]
        count: Any = n_suspects
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
            raise ValueError(f"n_suspects must be a whole number that is not negative, got {count!r}")
        return ranked[:n_suspects]

    def _remember(self, *training: Any) -> None:
        """Keep what suspicions are found from."""
        self._training = training
        self._suspicion = None


def of_each(suspicion: FloatArray, group: NDArray[np.intp]) -> FloatArray:
    """Return the suspicion of each row from those of the groups of equal rows; 0 where it is in none (-1).

    Examples
    --------
    >>> of_each(np.array([0.2, 0.9]), np.array([1, -1, 0, 1]))
    array([0.9, 0. , 0.2, 0.9])
    """
    return np.where(group >= 0, suspicion[np.maximum(group, 0)], 0.0)


def share_of_first(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return first / (first + second): the suspicion that a length which should be the shorter is not.

    It is 1/2 where both are equal, and tends to 1 as the second vanishes.

    Examples
    --------
    >>> share_of_first(np.array([1.0, 3.0, 0.0]), np.array([1.0, 1.0, 0.0]))
    array([0.5 , 0.75, 0.5 ])
    """
    total = first + second
    return np.divide(first, total, out=np.full_like(total, 0.5), where=total > 0)
