"""Plots of learned metrics, after scikit-learn's Display convention.

Each class has ``from_estimator``, which computes and draws, and ``plot``, which draws again elsewhere; both
leave the matplotlib objects in ``ax_`` and ``figure_``.  The same views stand in the HTML report.

- :class:`CertifiedAccuracyDisplay`: what is certified of the answers, by the number of wrong labels
- :class:`EmbeddingDisplay`: the points before and after, suspects ringed
- :class:`FeatureWeightsDisplay`: what the metric looks at
- :class:`PairDistancesDisplay`: distances of similar and dissimilar pairs, with u and l
- :class:`SearchHistoryDisplay`: least cost met by time, that of the metric, the lower bound, the trivial cost
- :class:`SuspicionDisplay`: suspicion of every label, sorted
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from lptml.report import views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

SIMILAR, DISSIMILAR, ACCENT, QUIET, RING = "#2f7ed8", "#e07b39", "#2457c5", "#8a94a0", "#d6202a"


class _Display:
    """Axes for those who gave none."""

    ax_: Axes
    figure_: Figure | SubFigure

    def _start(self, ax: Axes | None) -> Axes:
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError:
                raise ImportError("plots need matplotlib: pip install 'lptml[plots]'") from None
            _, ax = plt.subplots()
        self.ax_ = ax
        self.figure_ = ax.figure
        return ax


class CertifiedAccuracyDisplay(_Display):
    """Share of answers that are right and provably stay so, by the number of changes they must survive.

    Parameters
    ----------
    counts : ndarray (m,)
        Changed labels or points.
    accuracy : ndarray (m,)
    n_training : int
    attack : str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lptml import CertifiedKNeighborsClassifier
    >>> from lptml.plots import CertifiedAccuracyDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CertifiedKNeighborsClassifier().fit(X[::2], y[::2])
    >>> display = CertifiedAccuracyDisplay.from_estimator(model, X[1::2], y[1::2])
    >>> bool(display.accuracy[0] == model.score(X[1::2], y[1::2]))
    True
    """

    def __init__(
        self, counts: NDArray[Any], accuracy: NDArray[Any], n_training: int, attack: str = "flip"
    ) -> None:
        self.counts, self.accuracy, self.n_training, self.attack = counts, accuracy, n_training, attack

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        attack: str = "flip",
        largest: float = 0.2,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Draw the certified accuracy of a fitted :class:`lptml.CertifiedKNeighborsClassifier`.

        Parameters
        ----------
        estimator : fitted CertifiedKNeighborsClassifier
        X : array-like (n, d)
        y : array-like (n,)
            The true classes.
        attack : {"flip", "plant", "remove", "alter"}, default="flip"
        largest : float, default=0.2
            Where the axis ends, as a share of the training points.
        ax : matplotlib Axes, optional
        **style
            For ``ax.step``.
        """
        check_is_fitted(estimator, "codes_")
        n = len(estimator.codes_)
        counts = np.arange(int(np.ceil(largest * n)) + 1)
        accuracy = estimator.certified_accuracy(X, y, counts, attack=attack)
        return cls(counts, accuracy, n, attack).plot(ax=ax, **style)

    def plot(self, ax: Axes | None = None, **style: Any) -> Self:
        """Draw on ``ax``, or on new axes."""
        ax = self._start(ax)
        ax.step(self.counts, self.accuracy, **({"where": "mid", "color": ACCENT} | style))
        changes = {"flip": "wrong labels", "plant": "planted points", "remove": "removed points"}
        what = changes.get(self.attack, "altered points")
        ax.set(xlabel=f"{what} ({self.n_training} points)", ylabel="certified accuracy", ylim=(0, 1.02))
        return self


class EmbeddingDisplay(_Display):
    """Points in the plane of the two main axes of a metric.

    Parameters
    ----------
    points : ndarray (n, 2)
    y : ndarray (n,)
        Labels, one colour each.
    suspects : ndarray of int
        Positions of the points to ring.
    title : str

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lptml import LPTML_Supervised
    >>> from lptml.plots import EmbeddingDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LPTML_Supervised(max_trials=5, random_state=0).fit(X, y)
    >>> display = EmbeddingDisplay.from_estimator(model, X, y)
    >>> display.points.shape
    (150, 2)
    """

    def __init__(self, points: NDArray[Any], y: NDArray[Any], suspects: NDArray[Any], title: str) -> None:
        self.points, self.y, self.suspects, self.title = points, y, suspects, title

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        suspects: ArrayLike | None = None,
        before: bool = False,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Draw the points under the metric of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator with ``components_``
        X : array-like (n, d)
        y : array-like (n,)
        suspects : array-like of int, optional
            Positions of points to ring.
        before : bool, default=False
            Draw the Euclidean distance instead, for comparison.
        ax : matplotlib Axes, optional
        **style
            For ``ax.scatter``.
        """
        check_is_fitted(estimator, "components_")
        points = np.asarray(X, dtype=np.float64)
        flat = views.plane(points)
        if not before:
            flat = views.turned(views.plane(points @ estimator.components_.T), flat)
        ringed = np.asarray([] if suspects is None else suspects, dtype=np.int64)
        title = "Euclidean distance" if before else "learned metric"
        return cls(flat, np.asarray(y), ringed, title).plot(ax=ax, **style)

    def plot(self, ax: Axes | None = None, **style: Any) -> Self:
        """Draw on ``ax``, or on new axes."""
        ax = self._start(ax)
        settings = {"s": 14, "alpha": 0.85, "linewidths": 0} | style
        for label in np.unique(self.y):
            chosen = self.points[self.y == label]
            ax.scatter(chosen[:, 0], chosen[:, 1], label=str(label), **settings)
        if self.suspects.size:
            ringed = self.points[self.suspects]
            ax.scatter(ringed[:, 0], ringed[:, 1], s=70, facecolors="none", edgecolors=RING, label="suspect")
        ax.set(title=self.title, xticks=[], yticks=[])
        ax.legend(frameon=False)
        return self


class FeatureWeightsDisplay(_Display):
    """The share of the squared distance that each feature carries.

    Parameters
    ----------
    names : list of str
        Heaviest first.
    share : ndarray (k,)
    correlation : ndarray (k, k)
        How the metric couples the features; not drawn, there for the caller.
    """

    def __init__(self, names: list[str], share: NDArray[Any], correlation: NDArray[Any]) -> None:
        self.names, self.share, self.correlation = names, share, correlation

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        *,
        feature_names: list[str] | None = None,
        limit: int = 20,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Draw the weights of a fitted estimator on the points X.

        Parameters
        ----------
        estimator : fitted estimator with ``components_``
        X : array-like (n, d)
            The spread of each feature makes weights of different units comparable.
        feature_names : list of str, optional
            By default those the estimator was fitted with, or x0, x1, ...
        limit : int, default=20
            Draw just the heaviest.
        ax : matplotlib Axes, optional
        **style
            For ``ax.barh``.
        """
        check_is_fitted(estimator, "components_")
        points = np.asarray(X, dtype=np.float64)
        L = estimator.components_
        names = views.feature_names(estimator, L.shape[1], feature_names)
        weights = views.feature_weights(L, points, names, limit)
        return cls(weights.names, weights.share, weights.correlation).plot(ax=ax, **style)

    def plot(self, ax: Axes | None = None, **style: Any) -> Self:
        """Draw on ``ax``, or on new axes."""
        ax = self._start(ax)
        ax.barh(self.names[::-1], self.share[::-1], **({"color": ACCENT} | style))
        ax.set(xlabel="share of the squared distance")
        return self


class PairDistancesDisplay(_Display):
    """Histograms of the distances of similar and dissimilar pairs, with the bounds u and l.

    Parameters
    ----------
    distances : lptml.report.views.PairDistances
    bounds : (float, float) or None
    """

    def __init__(self, distances: views.PairDistances, bounds: tuple[float, float] | None) -> None:
        self.distances, self.bounds = distances, bounds

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: ArrayLike, *, ax: Axes | None = None, **style: Any
    ) -> Self:
        """Draw the distances under a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator with ``components_``
        X : array-like (n, d) or (n, 2, d)
            Points, or pairs of points.
        y : array-like (n,)
            Labels of the points, or +1 (similar) and -1 of the pairs.
        ax : matplotlib Axes, optional
        **style
            For ``ax.stairs``.
        """
        check_is_fitted(estimator, "components_")
        given, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
        if given.ndim == 3:
            apart = np.linalg.norm((given[:, 0] - given[:, 1]) @ estimator.components_.T, axis=1)
            distances = views.PairDistances(apart[labels == 1], apart[labels == -1])
        else:
            distances = views.label_distances(given @ estimator.components_.T, labels)
        return cls(distances, getattr(estimator, "bounds_", None)).plot(ax=ax, **style)

    def plot(self, ax: Axes | None = None, **style: Any) -> Self:
        """Draw on ``ax``, or on new axes."""
        ax = self._start(ax)
        edges, similar, dissimilar = self.distances.histogram()
        settings = {"fill": True, "alpha": 0.45} | style
        ax.stairs(similar, edges, color=SIMILAR, label="similar", **settings)
        ax.stairs(dissimilar, edges, color=DISSIMILAR, label="dissimilar", **settings)
        marks: dict[str, float] = {}
        if self.bounds is not None:
            u, l = self.bounds
            marks = {"u = l": u} if u == l else {"u": u, "l": l}
        for name, bound in marks.items():
            ax.axvline(bound, color="black", ls="--", lw=1)
            ax.annotate(name, (bound, 1.0), xycoords=("data", "axes fraction"), ha="center", va="bottom")
        ax.set(xlabel="learned distance", ylabel="share of pairs")
        ax.legend(frameon=False)
        return self


class SearchHistoryDisplay(_Display):
    """The least violated share met so far, by time, between the trivial metric and the lower bound.

    A dot marks the metric itself, which at a positive temperature, or with shrinkage, may violate more.

    Parameters
    ----------
    history : lptml.report.views.SearchHistory
    """

    def __init__(self, history: views.SearchHistory) -> None:
        self.history = history

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **style: Any) -> Self:
        """Draw how a fitted LPTML estimator came to its metric.

        Parameters
        ----------
        estimator : fitted estimator with ``history_``
        ax : matplotlib Axes, optional
        **style
            For ``ax.step``.
        """
        check_is_fitted(estimator, "history_")
        return cls(views.search_history(estimator)).plot(ax=ax, **style)

    def plot(self, ax: Axes | None = None, **style: Any) -> Self:
        """Draw on ``ax``, or on new axes."""
        ax = self._start(ax)
        h = self.history
        seconds, rate = np.append(h.seconds, h.end[0]), np.append(h.rate, h.rate[-1])
        ax.step(seconds, rate, **({"where": "post", "color": ACCENT, "label": "least met"} | style))
        ax.plot(h.end[0], h.final, "o", color=ACCENT, label="this metric")
        ax.axhline(h.trivial, color=QUIET, ls=":", label=h.trivial_name)
        if h.lower > 0:
            ax.axhline(h.lower, color=DISSIMILAR, ls="--", label="lower bound")
        ax.set(xlabel="seconds", ylabel="violated share", ylim=(0, None))
        ax.legend(frameon=False)
        return self


class SuspicionDisplay(_Display):
    """The suspicion of every label, highest first.

    Parameters
    ----------
    suspicion : ndarray (n,)
    n_suspects : int or None
        Where to draw the line between suspects and the rest.
    """

    def __init__(self, suspicion: NDArray[Any], n_suspects: int | None) -> None:
        self.suspicion, self.n_suspects = suspicion, n_suspects

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_suspects: int | None = None, ax: Axes | None = None, **style: Any
    ) -> Self:
        """Draw ``suspicion_`` of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator with ``suspicion_``
        n_suspects : int, optional
            How many of the labels are taken for wrong.
        ax : matplotlib Axes, optional
        **style
            For ``ax.plot``.
        """
        check_is_fitted(estimator, "components_")
        return cls(np.asarray(estimator.suspicion_, dtype=np.float64), n_suspects).plot(ax=ax, **style)

    def plot(self, ax: Axes | None = None, **style: Any) -> Self:
        """Draw on ``ax``, or on new axes."""
        ax = self._start(ax)
        ranked = np.sort(self.suspicion)[::-1]
        ax.plot(np.arange(1, ranked.size + 1), ranked, **({"color": ACCENT} | style))
        if self.n_suspects is not None:
            ax.axvspan(0.5, self.n_suspects + 0.5, color=RING, alpha=0.15, lw=0, label="suspects")
            ax.legend(frameon=False)
        ax.set(xlabel="rank of the label", ylabel="suspicion", ylim=(0, 1.02))
        return self
