"""Input of the estimators: what users pass becomes finite float64 arrays, or a ValueError names the argument.

All that an estimator refuses about points, tuples, labels, weights, a preprocessor or an initial metric is
refused here, so that all learners (ours and the baselines) say the same thing about the same mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from lptml.constraints import checks
from lptml.constraints.checks import InputTypeError

FloatArray = NDArray[np.float64]
Preprocessor = Callable[[NDArray[Any]], ArrayLike]

#: What one tuple is called, by its number of points.
TUPLE_NAMES = {2: "pairs", 3: "triplets", 4: "quadruplets"}

#: Entries of the penalty beyond this would overflow where it meets a metric.
LARGEST_PENALTY = 1e200

#: Entries of a metric to start from lie between these, if they are not zero.
LARGEST_ENTRY = 1e150
SMALLEST_ENTRY = 1e-150


class PreprocessorError(ValueError):
    """The user's preprocessor raised an exception, or did not return points."""


class ArrayPreprocessor:
    """Looks points up by their row in an array or data frame.

    Examples
    --------
    >>> ArrayPreprocessor([[1.0, 2.0], [3.0, 4.0]])(np.array([1, 0, 1]))
    array([[3., 4.],
           [1., 2.],
           [3., 4.]])
    """

    def __init__(self, points: Any) -> None:
        checks.refuse_other_than_numbers(points, "preprocessor")
        with telling("preprocessor must hold numbers"):
            self.points = check_array(points, dtype=np.float64, input_name="preprocessor")  # (N, d)
        columns = getattr(points, "columns", None)
        self.feature_names: NDArray[Any] | None = None
        if columns is not None and all(isinstance(name, str) for name in columns):
            self.feature_names = np.asarray(columns, dtype=object)

    def __call__(self, indices: NDArray[Any]) -> FloatArray:
        """Return the points of the given rows."""
        if indices.dtype.kind not in "iu":
            raise ValueError(
                f"indices into the preprocessor must be integers, got {indices.dtype} "
                "(points instead of indices need no preprocessor, or one dimension more)"
            )
        if indices.size and (indices.min() < 0 or indices.max() >= len(self.points)):
            raise ValueError(
                f"indices into the preprocessor must lie in 0..{len(self.points) - 1}, "
                f"got {indices.min()}..{indices.max()}"
            )
        return np.asarray(self.points[indices], dtype=np.float64)


def check_mask(trusted: Any, n: int) -> NDArray[np.bool_]:
    """Booleans, one for each point."""
    mask = np.asarray(trusted)
    if mask.shape != (n,) or mask.dtype != bool:
        raise ValueError(f"trusted must be {n} booleans, got {mask.dtype} of shape {mask.shape}")
    return mask


def check_trust(trust: Any, n: int) -> FloatArray | None:
    """Probabilities that the labels of points are right, if any are given."""
    if trust is None:
        return None
    values = checks.as_floats(trust, "trust")
    if values.shape != (n,) or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"trust must be {n} numbers from 0 to 1, one for each point")
    return values


def check_preprocessor(preprocessor: Any) -> Preprocessor | None:
    """Turn the constructor's ``preprocessor`` (None, array-like or callable) into a callable or None."""
    if preprocessor is None:
        return None
    if callable(preprocessor):
        return cast(Preprocessor, preprocessor)
    if hasattr(preprocessor, "__array__") or isinstance(preprocessor, list | tuple):
        return ArrayPreprocessor(preprocessor)
    raise ValueError(
        f"preprocessor must be None, an array of points or a callable, got {type(preprocessor).__name__}"
    )


def _call(preprocessor: Preprocessor, indicators: NDArray[Any]) -> NDArray[Any]:
    """Apply a preprocessor to a flat array of indicators, and insist on one point each."""
    try:
        points = np.asarray(preprocessor(indicators))
    except Exception as error:
        raise PreprocessorError(f"preprocessor failed on the given indices: {error}") from error
    if points.ndim != 2 or len(points) != len(indicators):
        raise PreprocessorError(
            f"preprocessor must return one point (row) for each of the {len(indicators)} indices, "
            f"got an array of shape {points.shape}"
        )
    return points


@contextmanager
def telling(what: str) -> Iterator[None]:
    """Say what was expected where NumPy or scikit-learn can do nothing with an object: a ValueError."""
    try:
        with np.errstate(over="ignore"):  # longer floats that become infinite are refused as such
            yield
    except ValueError:
        raise
    except (TypeError, OverflowError) as error:
        raise InputTypeError(f"{what}: {error}") from error


def _shape_of(data: Any, name: str) -> NDArray[Any]:
    """View array-likes as an array just to look at its shape and kind, refusing what has none."""
    checks.refuse_other_than_numbers(data, name)
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"the rows of the input differ in length: {error}") from error
    checks.refuse_other_than_numbers(array, name)
    return array


def check_magnitude(points: FloatArray, name: str, *, learning: bool = True) -> None:
    """Refuse values whose squares overflow and, where a metric is learned, features whose squares vanish."""
    checks.check_magnitude(points, name)
    if learning:
        tuples = points.ndim == 3
        spread = checks.spread_of_tuples(points) if tuples else checks.spread_of_points(points)
        checks.check_spread(spread, name)


def frame_names(X: Any) -> NDArray[Any] | None:
    """Return the column names of a data frame, or None; of pandas' scikit-learn reads them itself."""
    columns = getattr(X, "columns", None)
    if columns is None or hasattr(X, "iloc") or not all(isinstance(name, str) for name in columns):
        return None
    return np.array(list(columns), dtype=object)


def form_points(X: Any, preprocessor: Preprocessor | None) -> Any:
    """Return points for ``X``: indices (1-D) go through the preprocessor, anything else is unchanged."""
    if preprocessor is None:
        return X
    array = _shape_of(X, "X")
    return _call(preprocessor, array) if array.ndim == 1 else X


def form_tuples(tuples: Any, size: int, preprocessor: Preprocessor | None, estimator: object) -> FloatArray:
    """Return tuples as an array (n, size, d) of float64, through the preprocessor where they are indices."""
    name = TUPLE_NAMES[size]
    array = _shape_of(tuples, name)
    if array.ndim == 2 and preprocessor is not None:
        if array.shape[1] != size:
            raise ValueError(f"{name} of indices must have {size} columns, got shape {array.shape}")
        array = _call(preprocessor, array.reshape(-1)).reshape(len(array), size, -1)
    if array.ndim != 3:
        hint = (
            ""
            if array.ndim != 2
            else "; a 2-D array holds indices, which need a preprocessor. Reshape your data"
        )
        raise ValueError(
            f"{name} must be an array of shape (n_{name}, {size}, n_features), got {array.ndim}-D "
            f"of shape {array.shape}{hint}"
        )
    if array.shape[1] != size:
        raise ValueError(f"{name} must hold {size} points each, got shape {array.shape}")
    if len(array) == 0:
        raise ValueError(f"{name} is empty: Found array with 0 sample(s) while a minimum of 1 is required")
    if array.shape[2] == 0:
        raise ValueError(
            f"{name} has no features: 0 feature(s) (shape={array.shape}) while a minimum of 1 is required"
        )
    with telling(f"{name} must hold numbers"):
        array = check_array(
            array, dtype=np.float64, allow_nd=True, ensure_2d=False, input_name=name, estimator=estimator
        )
    return np.ascontiguousarray(array)


def points_of(estimator: Any, X: Any) -> FloatArray:
    """New points (n, d) for a classifier that was fitted."""
    checks.refuse_other_than_numbers(X, "X")
    with telling("X must hold numbers"):
        points = validate_data(estimator, X, dtype=np.float64, reset=False)
    check_magnitude(points, "X", learning=False)
    return np.ascontiguousarray(points)


def points_and_labels(
    estimator: Any, X: Any, y: Any, *, min_samples: int = 1
) -> tuple[FloatArray, NDArray[Any]]:
    """Points (n, d) and the class of each, as a classifier is fitted to."""
    checks.refuse_other_than_numbers(X, "X")
    labels = None if y is None else _labels(y, "y")
    with telling("X must hold numbers"):
        points, labels = validate_data(estimator, X, labels, dtype=np.float64, ensure_min_samples=min_samples)
    check_magnitude(points, "X")
    with telling("y must hold classes"):
        check_classification_targets(labels)
    if type_of_target(labels) not in ("binary", "multiclass"):
        raise ValueError(f"Unknown label type: {type_of_target(labels)}")
    return np.ascontiguousarray(points), labels


def _labels(y: Any, name: str) -> NDArray[Any]:
    """One label each, of any type."""
    if np.ma.is_masked(y):
        raise ValueError(f"{name} has masked values: leave them out")
    if getattr(getattr(y, "dtype", None), "kind", "") == "T":
        y = y.tolist()  # scikit-learn does not know NumPy's own strings
    with telling(f"{name} must hold one label for each"):
        return column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name=name), warn=True)


def check_pair_labels(y: Any, n: int, *, name: str = "y", both: bool = False) -> NDArray[np.int8]:
    """Return labels of pairs as int8 in {-1, +1}, with both kinds present if ``both``.

    Booleans and words (similar, same, yes; dissimilar, different, no; ...) are taken as on the command line.

    Examples
    --------
    >>> check_pair_labels([1, -1, 1], 3)
    array([ 1, -1,  1], dtype=int8)
    >>> check_pair_labels(["same", "different"], 2), check_pair_labels([True, False], 2)
    (array([ 1, -1], dtype=int8), array([ 1, -1], dtype=int8))
    """
    if y is None:
        raise ValueError(f"{name} is None: the learner requires y to be passed, but the target y is None")
    labels = _labels(y, name)
    if len(labels) != n:
        raise ValueError(f"{name} has {len(labels)} labels for {n} tuples: inconsistent numbers of samples")
    if labels.dtype.kind not in "iuf":
        labels = _as_numbers(labels, name)
    if not np.isin(labels, (-1, 1)).all():
        found = ", ".join(str(value) for value in np.unique(labels)[:5])
        hint = " (0/1 labels: pass 2 * y - 1)" if np.isin(labels, (0, 1)).all() else ""
        raise ValueError(f"{name} must be +1 for similar and -1 for dissimilar pairs, found {found}{hint}")
    if both and len(np.unique(labels)) < 2:
        kind = "similar (+1)" if labels[0] == 1 else "dissimilar (-1)"
        raise ValueError(
            f"{name} holds just one class, {kind} pairs: a trivial metric satisfies them all; "
            "pairs of both kinds are needed"
        )
    return labels.astype(np.int8)


def _as_numbers(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Booleans and words as +1 and -1; other objects as the numbers they are."""
    if labels.dtype.kind in "bUT" or all(isinstance(label, (str, bool, np.bool_)) for label in labels):
        found = [checks.pair_label(label) for label in labels]
        if None in found:
            word = labels[found.index(None)]
            raise ValueError(
                f"{name} must hold the numbers -1 and +1, booleans, or words such as 'similar' and "
                f"'dissimilar'; found {word!r}"
            )
        return np.array(found)
    try:
        return labels.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kinds = "strings" if any(isinstance(label, str) for label in labels) else "objects"
        raise ValueError(f"{name} must hold the numbers -1 and +1, got {kinds}") from error


def check_point_labels(y: Any, n: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return (classes, codes): the distinct labels, and each point's place among them (-1: unlabelled).

    The number -1 means unlabelled, as in metric-learn and scikit-learn's semi-supervised learners.

    Examples
    --------
    >>> classes, codes = check_point_labels(["b", "a", "b"], 3)
    >>> classes, codes
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    if y is None:
        raise ValueError("y is None: the learner requires y to be passed, but the target y is None")
    plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iub"  # nothing to refuse
    labels = y if plain else _labels(y, "y")
    if len(labels) != n:
        check_consistent_length(np.empty(n), labels)
    if labels.dtype.kind == "O":
        if len({isinstance(label, str) for label in labels}) == 2:
            raise ValueError("y mixes strings and numbers: use labels of one type")
        labels = np.array(labels.tolist())
        if labels.ndim != 1:
            raise ValueError("y holds tuples or lists: each point has one label, a number or a text")
    if not plain:
        with telling("y must hold classes"):
            check_classification_targets(labels)
    known = np.ones(n, dtype=bool) if labels.dtype.kind not in "iuf" else labels != -1
    classes, inverse = np.unique(labels[known], return_inverse=True)
    if len(classes) < 2:
        dropped = "" if known.all() else f" ({n - known.sum()} labels are -1, which means unlabelled)"
        raise ValueError(f"y must hold at least two classes, got {len(classes)} class(es){dropped}")
    codes = np.full(n, -1, dtype=np.int64)
    codes[known] = inverse
    return classes, codes


def check_weight(weight: Any, n: int, *, name: str = "sample_weight") -> FloatArray | None:
    """Return weights as float64 (n,), or None; they must be finite, not negative, and not all zero.

    Weights so small that no sum with the others would notice them are zero from here on.

    Examples
    --------
    >>> check_weight([1, 2], 2)
    array([1., 2.])
    """
    if weight is None:
        return None
    array = _shape_of(weight, name)
    if array.dtype.kind in "USV" or (array.dtype.kind == "O" and any(isinstance(w, str) for w in array.flat)):
        raise ValueError(f"{name} must hold numbers, got {array.dtype}")
    if array.ndim == 0 and array.dtype.kind in "iuf":
        array = np.full(n, float(array))
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-D: Sample weights must be 1D array or scalar, got {array.ndim}-D")
    if len(array) != n:
        raise ValueError(f"{name}.shape == {array.shape}, expected ({n},): one weight for each sample")
    with telling(f"{name} must hold numbers"):
        array = check_array(array, dtype=np.float64, ensure_2d=False, input_name=name)
    if (array < 0).any():
        raise ValueError(f"{name} holds negative weights")
    if not (array > 0).any():
        raise ValueError(f"{name} is zero everywhere: nothing is left to learn from")
    checks.check_heaviest(array, name)
    return np.where(checks.exact_sum_grid(array) > 0, array, 0.0)


def check_metric(metric: Any, d: int, name: str) -> FloatArray | None:
    """Return a positive semidefinite (d, d) array, or None where none is given.

    Examples
    --------
    >>> check_metric([[2, 0], [0, 1]], 2, "initial_metric")
    array([[2., 0.],
           [0., 1.]])
    """
    if metric is None:
        return None
    checks.refuse_other_than_numbers(metric, name)
    with telling(f"{name} must hold numbers"):
        matrix = check_array(metric, dtype=np.float64, input_name=name)
    if matrix.shape != (d, d):
        raise ValueError(f"{name} must have shape ({d}, {d}), got {matrix.shape}")
    largest = float(np.abs(matrix).max())
    if largest > 0 and not SMALLEST_ENTRY <= largest <= LARGEST_ENTRY:
        raise ValueError(
            f"the largest entry of {name} must lie between {SMALLEST_ENTRY:g} and {LARGEST_ENTRY:g}, "
            f"got {largest:g}"
        )
    if not np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-8 * largest):
        raise ValueError(f"{name} must be symmetric")
    matrix = (matrix + matrix.T) / 2
    if np.linalg.eigvalsh(matrix)[0] < -1e-8 * largest:
        raise ValueError(f"{name} must be positive semidefinite: it has a negative eigenvalue")
    return np.asarray(matrix, dtype=np.float64)


def check_penalty(regularization: float, regularizer: FloatArray | None) -> None:
    """Refuse a penalty that float64 cannot hold in the units in which metrics are learned."""
    if regularizer is not None and not regularization * np.abs(regularizer).max() <= LARGEST_PENALTY:
        raise ValueError(
            f"regularization={regularization:g} is too large for these features: every metric but zero would "
            f"be penalised by more than {LARGEST_PENALTY:g}"
        )
