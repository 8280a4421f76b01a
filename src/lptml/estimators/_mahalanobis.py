"""The Mahalanobis distance of a fitted learner: its factor, transformation, distances and metric function."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from lptml.constraints.checks import refuse_other_than_numbers
from lptml.estimators import _inputs
from lptml.estimators._inputs import ArrayPreprocessor, FloatArray

if TYPE_CHECKING:
    from lptml.maps import Map


def components_from_metric(A: ArrayLike, n_components: int | None = None) -> FloatArray:
    """Factor a positive semidefinite matrix: return L with L'L = A, its rows in order of decreasing weight.

    The matrix is first scaled to a unit diagonal. Without that, features whose scales differ by many orders
    of magnitude would lose the small entries of A to rounding.

    Parameters
    ----------
    A : array-like (d, d)
        Symmetric positive semidefinite matrix; eigenvalues that rounding made negative count as zero.
    n_components : int, optional
        Number of rows to keep; d if not given.

    Returns
    -------
    L : ndarray (n_components, d)

    Examples
    --------
    >>> components_from_metric([[4.0, 0.0], [0.0, 0.0]])
    array([[2., 0.],
           [0., 0.]])
    """
    A = np.asarray(A, dtype=np.float64)
    scale = np.sqrt(np.maximum(np.diag(A), 0.0))  # (d,)
    divisor = np.where(scale > 0, scale, 1.0)
    correlation = A / np.outer(divisor, divisor)
    eigenvalues, vectors = np.linalg.eigh((correlation + correlation.T) / 2)
    order = np.argsort(-eigenvalues, kind="stable")[: len(A) if n_components is None else n_components]
    L = np.sqrt(np.maximum(eigenvalues[order], 0.0))[:, None] * vectors[:, order].T  # (k, d)
    largest = np.abs(L).argmax(axis=1)
    signs = np.where(L[np.arange(len(L)), largest] < 0, -1.0, 1.0)
    return np.ascontiguousarray(L * signs[:, None] * scale) + 0.0  # + 0.0: no negative zeros


class MahalanobisMetric:
    """The distance of two points under a fixed linear map; what :meth:`MahalanobisMixin.get_metric` returns.

    Where a learner has a map that is not linear, points go through a copy of it first. Unlike a nested
    function this can be pickled: it serves as ``metric=`` with ``n_jobs`` and in saved models.

    Examples
    --------
    >>> metric = MahalanobisMetric(np.array([[3.0, 0.0], [0.0, 4.0]]))
    >>> metric([0, 0], [1, 1]), metric([0, 0], [1, 1], squared=True)
    (5.0, 25.0)
    """

    def __init__(
        self, components: FloatArray, mapping: Map | None = None, n_features: int | None = None
    ) -> None:
        self.components = np.array(components, dtype=np.float64)  # (k, d)
        self.mapping = copy.deepcopy(mapping)
        self.n_features = self.components.shape[1] if n_features is None else n_features

    def __call__(self, u: ArrayLike, v: ArrayLike, squared: bool = False) -> float:
        """Return the distance of u and v, vectors or single rows, or its square."""
        d = self.n_features
        both = [np.asarray(each, dtype=np.float64) for each in (u, v)]
        both = [each[0] if each.shape == (1, d) else each for each in both]
        if any(each.shape != (d,) for each in both):
            found = " and ".join(str(each.shape) for each in both)
            raise ValueError(f"u and v must be vectors of {d} features, got shapes {found}")
        points = np.stack(both)
        near, far = points if self.mapping is None else self.mapping.transform(points)
        image = self.components @ (near - far)
        square = float(image @ image)
        return square if squared else float(np.sqrt(square))


class MahalanobisMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Distances, transformation and input of a learner that has ``components_``.

    A learner with a map that is not linear has ``map_`` and ``last_layer_`` instead: points go through the
    map, and the metric is that of its features.
    """

    components_: FloatArray
    n_features_in_: int
    preprocessor: Any

    map_: Map
    last_layer_: FloatArray

    def __getattr__(self, name: str) -> Any:
        if name == "components_" and "map_" in vars(self):
            raise AttributeError(
                "a map that is not linear has no components_: use transform, pair_distance or get_metric"
            )
        return object.__getattribute__(self, name)  # raises what it raised

    def __sklearn_is_fitted__(self) -> bool:
        return "last_layer_" in vars(self) or hasattr(self, "components_")

    def _embed(self, points: FloatArray) -> FloatArray:
        """The features (..., m) of points (..., d) over which the metric is one."""
        if "map_" not in vars(self):
            return points
        flat = self.map_.transform(points.reshape(-1, points.shape[-1]))
        return flat.reshape(*points.shape[:-1], -1)

    @property
    def _n_features_out(self) -> int:
        return len(self._live_components())

    def _live_components(self) -> FloatArray:
        """Return ``components_`` as it is now, refusing what a user may have put there by mistake."""
        check_is_fitted(self)
        if "map_" in vars(self):
            return self.last_layer_
        components = np.atleast_2d(np.asarray(self.components_, dtype=np.float64))
        if components.ndim != 2 or components.shape[1] != self.n_features_in_:
            raise ValueError(
                f"components_ must have shape (n_components, {self.n_features_in_}), got {components.shape}"
            )
        return components

    def _start(self) -> None:
        """Begin a fit: forget what an earlier one learned, make the preprocessor ready."""
        for name in ("components_", "last_layer_", "map_"):
            self.__dict__.pop(name, None)
        self.preprocessor_ = _inputs.check_preprocessor(getattr(self, "preprocessor", None))

    def _points(self, X: Any, *, reset: bool = False, min_samples: int = 1) -> FloatArray:
        """Return points (n, d), through the preprocessor where X holds indices; ``reset`` in fit only."""
        refuse_other_than_numbers(X, "X")
        points = _inputs.form_points(X, self.preprocessor_)
        if points is X or not isinstance(self.preprocessor_, ArrayPreprocessor):
            names = _inputs.frame_names(points)
            with _inputs.telling("X must hold numbers"), warnings.catch_warnings():
                if names is not None:  # scikit-learn may not know this kind of frame; see _same_names
                    warnings.filterwarnings("ignore", message="X does not have valid feature names")
                points = validate_data(
                    self, points, dtype=np.float64, reset=reset, ensure_min_samples=min_samples
                )
            if names is not None:
                self._same_names(names, reset)
        elif reset:
            self._take_features(points.shape[1])
            if len(points) < min_samples:
                raise ValueError(f"X has {len(points)} sample(s), a minimum of {min_samples} is required")
        else:
            self._same_features(points.shape[1], "the points of the preprocessor")
        _inputs.check_magnitude(points, "X", learning=reset)
        return self._embed(np.ascontiguousarray(points))

    def _tuples(self, tuples: Any, size: int, *, reset: bool = False) -> FloatArray:
        """Return tuples (n, size, d), through the preprocessor where they are indices; ``reset`` in fit."""
        array = _inputs.form_tuples(tuples, size, self.preprocessor_, self)
        _inputs.check_magnitude(array, _inputs.TUPLE_NAMES[size], learning=reset)
        if reset:
            self._take_features(array.shape[2])
        else:
            self._same_features(array.shape[2], _inputs.TUPLE_NAMES[size])
        return self._embed(array)

    def _take_features(self, d: int) -> None:
        """Note the number of features, and their names where the preprocessor is a data frame."""
        self.n_features_in_ = d
        self.__dict__.pop("feature_names_in_", None)
        names = getattr(self.preprocessor_, "feature_names", None)
        if isinstance(self.preprocessor_, ArrayPreprocessor) and names is not None:
            self.feature_names_in_ = names

    def _same_names(self, names: NDArray[Any], reset: bool) -> None:
        """Note the names of a frame's columns, or insist on those that were noted."""
        if reset:
            self.feature_names_in_ = names
            return
        known = getattr(self, "feature_names_in_", None)
        if known is not None and list(known) != list(names):
            raise ValueError(
                "The feature names should match those that were passed during fit: "
                f"expected {', '.join(known)}, got {', '.join(names)}"
            )

    def _same_features(self, d: int, name: str) -> None:
        if d != self.n_features_in_:
            raise ValueError(
                f"{name} have {d} features, but {type(self).__name__} "
                f"is expecting {self.n_features_in_} features as input"
            )

    def transform(self, X: Any) -> FloatArray:
        """Map points into the space where the learned distance is Euclidean: X L'.

        Parameters
        ----------
        X : array-like (n_points, n_features), or (n_points,) of indices with a preprocessor

        Returns
        -------
        ndarray (n_points, n_components)

        Examples
        --------
        >>> import numpy as np
        >>> from lptml import LPTML
        >>> pairs = np.array([[[0.0, 0.0], [3.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
        >>> model = LPTML(bounds=(1.0, 2.0), max_trials=1, random_state=0).fit(pairs, [1, -1])
        >>> model.components_ = np.array([[1.0, 2.0]])  # methods follow what stands there now
        >>> model.transform([[1.0, 1.0], [2.0, 0.0]])
        array([[3.],
               [2.]])
        """
        components = self._live_components()
        return self._points(X) @ components.T

    def pair_distance(self, pairs: Any) -> FloatArray:
        """Return the learned distance (not squared) of each pair.

        Parameters
        ----------
        pairs : array-like (n_pairs, 2, n_features), or (n_pairs, 2) of indices with a preprocessor

        Returns
        -------
        ndarray (n_pairs,)

        Examples
        --------
        >>> import numpy as np
        >>> from lptml import LPTML
        >>> pairs = np.array([[[0.0, 0.0], [3.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
        >>> model = LPTML(bounds=(1.0, 2.0), max_trials=1, random_state=0).fit(pairs, [1, -1])
        >>> near, far = model.pair_distance(pairs)
        >>> bool(near <= 1.0 + 1e-6), bool(far >= 2.0 - 1e-6)
        (True, True)
        """
        components = self._live_components()
        array = self._tuples(pairs, 2)
        return np.linalg.norm((array[:, 1] - array[:, 0]) @ components.T, axis=1)

    def pair_score(self, pairs: Any) -> FloatArray:
        """Return the similarity of each pair: minus its distance. See :meth:`pair_distance`."""
        return -self.pair_distance(pairs)

    def score_pairs(self, pairs: Any) -> FloatArray:
        """Return the distance of each pair; the old name of :meth:`pair_distance`."""
        warnings.warn(
            "score_pairs is the old name of pair_distance: use pair_distance, or pair_score for similarities",
            FutureWarning,
            stacklevel=2,
        )
        return self.pair_distance(pairs)

    def get_metric(self) -> MahalanobisMetric:
        """Return the distance as a function f(u, v, squared=False), a copy that later fits do not change.

        It can be the ``metric=`` of scikit-learn's neighbour and cluster methods.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> from lptml import LPTML_Supervised
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LPTML_Supervised(max_trials=1, random_state=0).fit(X[::5], y[::5])
        >>> neighbors = KNeighborsClassifier(3, metric=model.get_metric()).fit(X[::5], y[::5])
        >>> neighbors.score(X[1::5], y[1::5]) > 0.9
        True
        """
        components = self._live_components()
        return MahalanobisMetric(components, vars(self).get("map_"), self.n_features_in_)

    def get_mahalanobis_matrix(self) -> FloatArray:
        """Return the learned matrix A = L'L (n_features, n_features); AttributeError with a map."""
        self._live_components()
        components = np.atleast_2d(np.asarray(self.components_, dtype=np.float64))
        return components.T @ components
