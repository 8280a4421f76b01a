"""What a report and a plot show of a metric, as plain arrays: one computation, two ways of drawing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
SAMPLE = 40_000  # pairs whose distances are drawn: a histogram does not change visibly beyond


def plane(X: FloatArray) -> FloatArray:
    """The points in the plane of their two largest principal components, (n, 2).

    A one-dimensional set keeps its only axis and gets zeros for the other.
    """
    centred = X - X.mean(axis=0)  # (n, d)
    if X.shape[1] > len(X):
        axes = np.linalg.svd(centred, full_matrices=False)[2][:2].T  # (d, <= 2)
    else:
        axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :2]
    axes = axes * np.where(axes.sum(axis=0) < 0, -1.0, 1.0)
    flat = centred @ axes
    return flat if flat.shape[1] == 2 else np.column_stack([flat, np.zeros(len(flat))])


def turned(after: FloatArray, before: FloatArray) -> FloatArray:
    """``after`` turned or mirrored to look most like ``before``, which changes no distance."""
    spread = np.where(before.std(axis=0) > 0, before.std(axis=0), 1.0)
    u, _, vt = np.linalg.svd(after.T @ (before / spread))
    return np.asarray(after @ (u @ vt))


@dataclass(frozen=True)
class FeatureWeights:
    """How much each feature counts, and how the metric couples them.

    Attributes
    ----------
    names : list of str
        Heaviest first.
    share : ndarray (k,)
        ``A_jj var_j`` over the sum of all: the share of the mean squared distance that feature j carries.
    correlation : ndarray (k, k)
        ``A_ij / sqrt(A_ii A_jj)``.
    left_out : int
        Features beyond the ``limit`` heaviest.
    """

    names: list[str]
    share: FloatArray
    correlation: FloatArray
    left_out: int


def feature_weights(L: FloatArray, X: FloatArray, names: list[str], limit: int = 30) -> FeatureWeights:
    """The weights of the ``limit`` heaviest features of the metric A = L'L on the points X."""
    squares = np.einsum("ij,ij->j", L, L)  # (d,): the diagonal of A
    carried = squares * X.var(axis=0)
    total = carried.sum()
    share = carried / total if total > 0 else np.zeros_like(carried)
    heaviest = np.argsort(-share, kind="stable")[:limit]
    root = np.sqrt(squares[heaviest])
    among = L[:, heaviest] / np.where(root > 0, root, np.inf)  # (k, limit)
    correlation = np.clip(among.T @ among, -1.0, 1.0)
    return FeatureWeights(
        [names[j] for j in heaviest], share[heaviest], correlation, max(0, len(names) - limit)
    )


@dataclass(frozen=True)
class PairDistances:
    """Distances of similar and dissimilar pairs under a metric."""

    similar: FloatArray
    dissimilar: FloatArray

    def histogram(self, bins: int = 48) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Edges; and for each kind the share of its pairs in each bin; the longest 0.5% in the last."""
        both = np.concatenate([self.similar, self.dissimilar])
        high = float(np.quantile(both, 0.995)) if both.size else 1.0
        edges = np.linspace(0.0, high if high > 0 else 1.0, bins + 1)
        inside = [np.histogram(np.minimum(d, edges[-1]), edges)[0] for d in (self.similar, self.dissimilar)]
        return edges, inside[0] / max(1, self.similar.size), inside[1] / max(1, self.dissimilar.size)


def label_distances(Z: FloatArray, y: NDArray[Any], random_state: int = 0) -> PairDistances:
    """Distances between transformed points Z (n, k) of equal and of different labels; sampled if many."""
    n = len(Z)
    if n * (n - 1) // 2 <= SAMPLE:
        i, j = np.triu_indices(n, 1)
    else:
        rng = np.random.default_rng(random_state)
        i, j = rng.integers(0, n, SAMPLE), rng.integers(0, n - 1, SAMPLE)
        j = j + (j >= i)
    distance = np.linalg.norm(Z[i] - Z[j], axis=1)  # (pairs,)
    same = y[i] == y[j]
    return PairDistances(distance[same], distance[~same])


@dataclass(frozen=True)
class SearchHistory:
    """The least violated share of the weight that was met, after each improvement, and how it ended.

    Attributes
    ----------
    seconds, trial, rate : ndarray (k,)
        Time, trials done by then, and share violated, of each improvement.
    end : (float, int)
        Seconds and trials of the whole fit.
    final : float
        The share that the metric itself violates; more than the least met where margins, a prior or an
        average count as well.
    trivial, lower : float
        The shares of the better trivial metric, and of a proven lower bound (0: none).
    trivial_name : str
        What the better trivial metric is.
    """

    seconds: FloatArray
    trial: NDArray[np.int64]
    rate: FloatArray
    end: tuple[float, int]
    final: float
    trivial: float
    lower: float
    trivial_name: str


def search_history(estimator: Any) -> SearchHistory:
    """The history of a fitted LPTML estimator."""
    seconds, rate, trial = (np.array(column) for column in zip(*estimator.history_))
    least = np.minimum.accumulate(rate)
    better = np.append(True, least[1:] < least[:-1])
    return SearchHistory(
        seconds[better],
        trial[better],
        rate[better],
        (float(seconds.max()), int(estimator.n_trials_)),
        float(estimator.violation_rate_),
        float(estimator.trivial_rate_),
        float(estimator.lower_bound_ or 0.0),  # 0 where nobody asked
        trivial_name(estimator),
    )


@dataclass(frozen=True)
class CrossValidation:
    """The settings that were compared, best first.

    Attributes
    ----------
    parameters : list of str
        Those in which the settings differ; all of them if there is just one.
    values : list of lists of str
        Their values in each setting.
    score : ndarray (k,)
        Mean score on points or pairs that were not learned from.
    error : ndarray (k,)
        Standard error of the difference from the best.
    averaged : ndarray (k,) of bool
        Whether the metric of the setting is in the average.
    """

    parameters: list[str]
    values: list[list[str]]
    score: FloatArray
    error: FloatArray
    averaged: NDArray[np.bool_]

    @property
    def best(self) -> str:
        """The best setting in words."""
        return ", ".join(f"{name} {value}" for name, value in zip(self.parameters, self.values[0]))


def cross_validation(estimator: Any) -> CrossValidation | None:
    """The cross-validation of a fitted estimator, if there was one."""
    results = getattr(estimator, "cv_results_", None)
    if results is None:
        return None
    order = np.argsort(-results["mean_test_score"], kind="stable")
    parameters, values = differences(results["params"])
    return CrossValidation(
        parameters,
        [values[i] for i in order],
        results["mean_test_score"][order],
        results["standard_error"][order],
        results["averaged"][order],
    )


def differences(settings: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The parameters in which settings differ, or all if there is just one, and their values in words.

    Examples
    --------
    >>> differences([{"prior": "within", "temperature": 0.15}, {"prior": np.eye(2), "temperature": 0.15}])
    (['prior'], [['within'], ['matrix 1']])
    >>> differences([{"prior": "within", "n_components": None}])
    (['prior', 'n_components'], [['within', 'all']])
    """
    matrices: list[bytes] = []  # in the order of their numbers

    def word(value: Any) -> str:
        if value is None or isinstance(value, str):
            return value or "all"
        if np.ndim(value) == 0:
            return f"{value:g}"
        known = np.asarray(value, dtype=np.float64).tobytes()
        if known not in matrices:
            matrices.append(known)
        return f"matrix {1 + matrices.index(known)}"

    columns = {name: [word(setting[name]) for setting in settings] for name in settings[0]}
    shown = [name for name, words in columns.items() if len(settings) == 1 or len(set(words)) > 1]
    return shown, [list(row) for row in zip(*(columns[name] for name in shown))]


def constraint_kind(estimator: Any) -> str | None:
    """What an estimator asked of the metric: pairs, all, neighbors, triplets or quadruplets, if it tells."""
    of_class = {"LPTML": "pairs", "LPTML_Triplets": "triplets", "LPTML_Quadruplets": "quadruplets"}
    name = type(estimator).__name__.removesuffix("CV")
    chosen = getattr(estimator, "best_params_", {}).get(
        "constraints", getattr(estimator, "constraints", None)
    )
    return of_class.get(name, chosen)


def trivial_name(estimator: Any) -> str:
    """The better trivial metric: of comparisons it is the Euclidean, as A = 0 violates them all."""
    comparisons = constraint_kind(estimator) in ("triplets", "quadruplets")
    return "Euclidean distance" if comparisons else "trivial metric"


def feature_names(estimator: Any, d: int, given: list[str] | None = None) -> list[str]:
    """The names given, those of the fit, or x0, x1, ..."""
    names = given if given is not None else getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(d)] if names is None else [str(n) for n in names]


def quantised(xy: FloatArray, steps: int = 10_000) -> list[int]:
    """Coordinates as integers 0..steps, x and y in turn; each axis fills its range."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    extent = np.where(high > low, high - low, 1.0)
    scaled = (xy - (low + high) / 2) / extent + 0.5
    return [int(v) for v in np.rint(steps * scaled).ravel()]


def first_axis_share(xy: FloatArray) -> float:
    """The share of the plane's variance along its first axis: near 1, the picture is really a line."""
    variance = xy.var(axis=0)
    total = float(variance.sum())
    return float(variance.max()) / total if total > 0 else 1.0
