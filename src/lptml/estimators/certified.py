"""Nearest neighbours that say how many wrong labels each answer survives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from lptml.certified import Ballot, Voters, attack_labels, decide, find_voters, flip_radius, point_radius
from lptml.constraints.checks import refuse_other_than_numbers
from lptml.estimators import _inputs
from lptml.estimators._inputs import FloatArray
from lptml.select.cross_validation import deal

ATTACKS = ("flip", "plant", "remove", "alter")
BUDGETS = (0, 0.01, 0.02, 0.05, 0.1)

#: Voters as a share of the average size of a class. Smaller classes should be able to win: 1, .9, .85, .8 and
#: .75 have a mean certified accuracy of .509, .512, .510, .508 and .504 on the 13 development sets.
_SHARE = 0.9
_BLOCK = 256  # queries at a time


class CertifiedKNeighborsClassifier(TransformerMixin, ClassifierMixin, BaseEstimator):
    """Nearest neighbours with a proof, for each answer, of how many wrong labels it survives.

    The ``n_neighbors`` training points vote that a random walk from the query reaches most often, under two
    metrics that depend on no label (:mod:`lptml.certified.voters`). If the winner leads clearly it is the
    answer; else all training points vote once more, with the weights of a Gaussian kernel smoother. Labels
    enter as votes and nowhere else, so what r changed labels can do to an answer is computed and not
    estimated: :meth:`certified_radius`.

    Parameters
    ----------
    n_neighbors : "auto" or int, default="auto"
        Voters; by default nine tenths of the average number of training points in a class. More voters make
        for longer leads, so for larger radii, and blur small classes.
    doubt : float in [0, 1], default=0.01
        The lead with which the first vote decides, as a share of the training points. The larger, the more
        answers come from the second vote, which is right more often and survives fewer flips. (On the 13
        development sets .01 and .02 have accuracies of .74 and .76; at 5% flips .35 and .32 are certified.)

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
    n_neighbors_ : int
        The number of voters.
    points_ : ndarray (n_samples, n_features)
        The training points.
    codes_ : ndarray (n_samples,) of int
        The place of each training label in ``classes_``.
    reference_ : None or ndarray (n_reference, n_features)
        The points that decided metrics and walks, where they were given.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the input had names.

    See Also
    --------
    RobustKNeighborsClassifier : Higher accuracy under random noise, without a proof.

    Notes
    -----
    Time is cubic and memory quadratic in the number of training points: for some thousands of them.

    References
    ----------
    Jia, J., Liu, Y., Cao, X. and Gong, N. Z. (2022). Certified robustness of nearest neighbors against data
    poisoning and backdoor attacks. AAAI 36.

    Levine, A. and Feizi, S. (2021). Deep partition aggregation: provable defenses against general poisoning
    attacks. ICLR 9.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lptml import CertifiedKNeighborsClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = CertifiedKNeighborsClassifier().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.93
    True
    >>> model.certified_radius(X[1:2])  # wrong labels among its 89 that cannot change this answer
    array([12])
    >>> model.certified_accuracy(X[1::2], y[1::2], [0.05]) > 0.85
    array([ True])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "doubt": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(self, n_neighbors: int | str = "auto", *, doubt: float = 0.01) -> None:
        self.n_neighbors = n_neighbors
        self.doubt = doubt

    def fit(self, X: Any, y: Any, *, reference: Any = None) -> Self:
        """Store the training points and prepare their votes.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
        y : array-like (n_samples,)
            Classes of any type.
        reference : array-like (n_reference, n_features), optional
            Trusted points without labels. If they are given, metrics and walks are theirs alone, and planted,
            removed and altered training points are certified as well.

        Returns
        -------
        self
        """
        self._validate_params()
        points, labels = _inputs.points_and_labels(self, X, y)
        self.reference_ = None if reference is None else self._check_reference(reference)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self.points_, self.codes_ = points, codes.astype(np.int64)
        self.n_neighbors_, _ = self._electorate(len(points))
        self.__dict__.pop("_prepared", None)
        self._voters()
        return self

    def _check_reference(self, reference: Any) -> FloatArray:
        refuse_other_than_numbers(reference, "reference")
        with _inputs.telling("reference must hold numbers"):
            points = check_array(reference, dtype=np.float64, input_name="reference")
        if points.shape[1] != self.n_features_in_:
            raise ValueError(
                f"reference has {points.shape[1]} features, but X has {self.n_features_in_} features"
            )
        points = np.ascontiguousarray(points)
        _inputs.check_magnitude(points, "reference")
        return points

    def _electorate(self, n_points: int) -> tuple[int, int]:
        """How many vote, and the lead that decides, among so many training points."""
        if self.n_neighbors == "auto":
            k = max(1, int(_SHARE * n_points / len(self.classes_)))
        else:
            k = min(int(self.n_neighbors), n_points)
        return k, max(1, int(np.ceil(self.doubt * n_points - 1e-9)))

    def _voters(self) -> Voters:
        """Made anew where a model comes from a file: it is a function of the points."""
        if "_prepared" not in self.__dict__:
            self._prepared = find_voters(self.points_, self.reference_)
        return self._prepared

    def _ballots(self, X: Any) -> Iterator[Ballot]:
        check_is_fitted(self, "points_")
        points = _inputs.points_of(self, X)
        voters, (k, doubt) = self._voters(), self._electorate(len(self.points_))
        for start in range(0, len(points), _BLOCK):
            block = points[start : start + _BLOCK]
            yield Ballot(voters.nearest(block, k), voters.weights(block), doubt)

    def transform(self, X: Any) -> FloatArray:
        """The space in which Euclidean distance is the second metric, that of the neighbours' differences.

        Parameters
        ----------
        X : array-like (n_samples, n_features)

        Returns
        -------
        ndarray (n_samples, n_components)
        """
        check_is_fitted(self, "points_")
        points = _inputs.points_of(self, X)
        voters = self._voters()
        return np.asarray(voters.features(points) @ voters.walks[1].L.T)

    def predict_proba(self, X: Any) -> FloatArray:
        """Share of each class in the vote that decides.

        Parameters
        ----------
        X : array-like (n_samples, n_features)

        Returns
        -------
        ndarray (n_samples, n_classes)
        """
        shares = []
        for ballot in self._ballots(X):
            outcome = decide(ballot, self.codes_, len(self.classes_))
            winner = np.eye(len(self.classes_))[outcome.answer]
            second = np.maximum(outcome.scores, 1e-12 * winner)  # no share is negative, nor are all zero
            share = np.where(outcome.first[:, None], outcome.votes, second)
            shares.append(share / share.sum(axis=1, keepdims=True))
        return np.concatenate(shares)

    def predict(self, X: Any) -> NDArray[Any]:
        """The winner of the vote that decides.

        Parameters
        ----------
        X : array-like (n_samples, n_features)

        Returns
        -------
        ndarray (n_samples,)
        """
        check_is_fitted(self, "points_")
        K = len(self.classes_)
        answers = [decide(ballot, self.codes_, K).answer for ballot in self._ballots(X)]
        return np.asarray(self.classes_[np.concatenate(answers)])

    def certified_radius(self, X: Any, *, attack: str = "flip") -> NDArray[np.int64]:
        """How many changes of the training data provably leave each answer as it is.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
        attack : {"flip", "plant", "remove", "alter"}, default="flip"
            What an attacker changes: labels, each to any of ``classes_``; or whole points with their labels,
            which he adds, takes away, or replaces by others. Of the last three nothing is certified (0)
            unless :meth:`fit` was given a ``reference``.

        Returns
        -------
        ndarray (n_samples,) of int
        """
        return self._answers(X, attack)[1]

    def _answers(self, X: Any, attack: str = "flip") -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The answer for each point, and how many changes provably leave it as it is."""
        if attack not in ATTACKS:
            raise ValueError(f"attack must be one of {', '.join(ATTACKS)}, got {attack!r}")
        answers, radii = [], []
        for ballot in self._ballots(X):
            answers.append(decide(ballot, self.codes_, len(self.classes_)).answer)
            radii.append(self._radius(ballot, attack))
        radius = np.concatenate(radii)
        if self.n_neighbors == "auto" or attack != "flip":  # a class that vanishes would change the voters
            radius = np.minimum(radius, np.bincount(self.codes_).min() - 1)
        return self.classes_[np.concatenate(answers)], radius

    def _radius(self, ballot: Ballot, attack: str) -> NDArray[np.int64]:
        K, N = len(self.classes_), len(self.codes_)
        if attack == "flip":
            return flip_radius(ballot, self.codes_, K)
        outcome = decide(ballot, self.codes_, K)
        if self.reference_ is None or K == 1:
            return np.zeros(len(outcome.answer), dtype=np.int64)
        step = {"plant": 1, "remove": -1, "alter": 0}[attack]
        return point_radius(outcome.votes, outcome.answer, lambda m: self._electorate(N + step * m), N - 1)

    def certified_accuracy(
        self, X: Any, y: Any, budgets: ArrayLike = BUDGETS, *, attack: str = "flip"
    ) -> FloatArray:
        """Share of answers that are right and provably stay so.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
        y : array-like (n_samples,)
            The true classes.
        budgets : array-like of int or float
            What an attacker may change: a number below 1 is a share of the training points, rounded up;
            any other must be a whole number of them.
        attack : {"flip", "plant", "remove", "alter"}, default="flip"
            See :meth:`certified_radius`.

        Returns
        -------
        ndarray (n_budgets,)
        """
        check_is_fitted(self, "points_")
        counts = budget_counts(budgets, len(self.points_))
        truth = column_or_1d(y)
        answers, radius = self._answers(X, attack)
        if len(truth) != len(radius):
            raise ValueError(f"y has {len(truth)} labels for {len(radius)} points")
        return _certified(answers == truth, radius, counts)

    def attacked_accuracy(self, X: Any, y: Any, budgets: ArrayLike = BUDGETS) -> FloatArray:
        """Share of answers that are right and that no attack found on the labels changes.

        An upper bound on what could be certified, beside :meth:`certified_accuracy`; attacks take much
        longer than certificates.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
        y : array-like (n_samples,)
        budgets : array-like of int or float
            As in :meth:`certified_accuracy`.

        Returns
        -------
        ndarray (n_budgets,)
        """
        check_is_fitted(self, "points_")
        counts = budget_counts(budgets, len(self.points_))
        cost: list[float] = []
        for ballot in self._ballots(X):
            found = attack_labels(ballot, self.codes_, len(self.classes_), int(counts.max()))
            cost += [np.inf if labels is None else int((labels != self.codes_).sum()) for labels in found]
        right = self.predict(X) == column_or_1d(y)
        return np.array([np.mean(right & (np.array(cost) > count)) for count in counts])

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {key: value for key, value in state.items() if key != "_prepared"}


@dataclass(frozen=True, eq=False)
class CrossCertified:
    """What each half of the rows certifies about the answers for the other."""

    accuracy: FloatArray
    """(n_budgets,): certified accuracy"""
    radius: NDArray[np.int64]
    """(n_drawn,): wrong labels that leave the answer as it is"""
    n_training: int
    """Labels in the smaller half"""
    n_rows: int
    """Rows that there are; where they are more than ``radius`` has, those of ``radius`` were drawn."""

    def __str__(self) -> str:
        flips = int(np.median(self.radius))
        labels = "1 wrong label" if flips == 1 else f"{flips} wrong labels"
        drawn = ""
        if len(self.radius) < self.n_rows:
            drawn = f" ({len(self.radius):,} rows drawn at random of {self.n_rows:,})"
        return (
            f"Half of the answers would survive {labels} among the {self.n_training:,} they come from{drawn}."
        )


def cross_certify(
    X: FloatArray, y: NDArray[Any], budgets: ArrayLike = BUDGETS, *, most: int = 2000, random_state: int = 0
) -> CrossCertified:
    """Certify rows by one another: each half trains a classifier with default settings for the other half.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        At least two classes.
    budgets : array-like of int or float
        As in :meth:`CertifiedKNeighborsClassifier.certified_accuracy`.
    most : int, default=2000
        Of more rows so many are drawn.
    random_state : int, default=0

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lptml.estimators.certified import cross_certify
    >>> print(cross_certify(*load_iris(return_X_y=True)))
    Half of the answers would survive 9 wrong labels among the 75 they come from.
    """
    rng = np.random.default_rng(random_state)
    rows = np.sort(rng.permutation(len(y))[:most])
    half = deal(np.unique(y[rows], return_inverse=True)[1], 2, rng)
    radius, accuracy = np.zeros(len(rows), dtype=np.int64), []
    for side in (0, 1):
        train, test = rows[half != side], rows[half == side]
        model = CertifiedKNeighborsClassifier().fit(X[train], y[train])
        answers, radius[half == side] = model._answers(X[test])
        counts = budget_counts(budgets, len(train))
        accuracy.append(_certified(answers == y[test], radius[half == side], counts))
    sizes = np.bincount(half, minlength=2)
    return CrossCertified(sizes / len(rows) @ np.array(accuracy), radius, int(sizes.min()), len(y))


def _certified(right: NDArray[np.bool_], radius: NDArray[np.int64], counts: NDArray[np.int64]) -> FloatArray:
    """Share of answers that are right and survive so many changes, for each count."""
    return np.array([np.mean(right & (radius >= count)) for count in counts])


def budget_counts(budgets: ArrayLike, n_points: int) -> NDArray[np.int64]:
    """Budgets as numbers of points: shares are rounded up.

    Examples
    --------
    >>> budget_counts([0, 3, 0.05], 90)
    array([0, 3, 5])
    """
    given = np.atleast_1d(np.asarray(budgets))
    if given.dtype.kind not in "iuf" or given.ndim != 1 or given.size == 0:
        raise ValueError("budgets must be numbers: shares of the training points below 1, or whole numbers")
    given = given.astype(np.float64)
    if not np.isfinite(given).all() or (given < 0).any() or ((given >= 1) & (given % 1 != 0)).any():
        raise ValueError(f"budgets must be shares below 1 or whole numbers, none negative, got {budgets!r}")
    return np.where(given < 1, np.ceil(given * n_points - 1e-9), given).astype(np.int64)
