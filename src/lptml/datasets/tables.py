"""The data sets of the paper, its synthetic and poisoned sets, and a few that go further.

Every function returns a scikit-learn ``Bunch`` with at least ``data`` (n, d), ``target`` (n,),
``feature_names``, ``target_names``, ``name``, ``source`` (where the data comes from) and ``DESCR``; the
poisoned sets also have ``poisoned``, the mask of the planted points. ``return_X_y=True`` gives the two arrays
alone.

Iris, Wine, Breast Cancer and Digits are bundled with scikit-learn. Ionosphere and Soybean (small) are not,
and are looked for, in this order, in

1. the folder named by the argument ``folder`` or the environment variable ``LPTML_DATA``;
2. the cache (``LPTML_CACHE``, or ``lptml`` in the user's cache folder);
3. the UCI Machine Learning Repository, whose table is checked against a known checksum and then cached.

When none of them has it, :class:`DatasetNotFound` says what to download and where to put it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as bundled
from sklearn.utils import Bunch

from lptml.datasets.uci import IONOSPHERE, SOYBEAN_SMALL, UCITable, fetch

_PAPER = "Generated after section 4 of the paper (arXiv:1905.09989)"


def load_iris(*, return_X_y: bool = False) -> Any:
    """Iris: 150 flowers, 4 features, 3 classes.

    Source: R. A. Fisher 1936, UCI Machine Learning Repository; bundled with scikit-learn.

    Examples
    --------
    >>> from lptml.datasets import load_iris
    >>> load_iris().data.shape
    (150, 4)
    """
    return _from_sklearn(bundled.load_iris, "iris", "R. A. Fisher 1936", return_X_y)


def load_wine(*, return_X_y: bool = False) -> Any:
    """Wine: 178 wines, 13 features of very different scale, 3 classes.

    Source: M. Forina et al. 1991, UCI Machine Learning Repository; bundled with scikit-learn.

    Examples
    --------
    >>> from lptml.datasets import load_wine
    >>> load_wine().data.shape
    (178, 13)
    """
    return _from_sklearn(bundled.load_wine, "wine", "M. Forina et al. 1991", return_X_y)


def load_breast_cancer(*, return_X_y: bool = False) -> Any:
    """Breast Cancer Wisconsin (diagnostic): 569 tumours, 30 features, 2 classes.

    Source: W. Wolberg, N. Street, O. Mangasarian 1995, UCI Machine Learning Repository; bundled with
    scikit-learn.

    Examples
    --------
    >>> from lptml.datasets import load_breast_cancer
    >>> load_breast_cancer().data.shape
    (569, 30)
    """
    author = "W. Wolberg, N. Street, O. Mangasarian 1995"
    return _from_sklearn(bundled.load_breast_cancer, "breast_cancer", author, return_X_y)


def load_digits(*, return_X_y: bool = False) -> Any:
    """Digits: 1797 images of 8 x 8 pixels, 10 classes.

    Source: E. Alpaydin, C. Kaynak 1998, UCI Machine Learning Repository (test part); bundled with
    scikit-learn.

    Examples
    --------
    >>> from lptml.datasets import load_digits
    >>> load_digits().data.shape
    (1797, 64)
    """
    return _from_sklearn(bundled.load_digits, "digits", "E. Alpaydin, C. Kaynak 1998", return_X_y)


def load_ionosphere(*, folder: str | None = None, download: bool = True, return_X_y: bool = False) -> Any:
    """Ionosphere: 351 radar returns, 34 features (the second is constant), good (g) or bad (b).

    Source: V. Sigillito 1989, UCI Machine Learning Repository; not bundled (see the module's docstring).

    Parameters
    ----------
    folder : str, optional
        Folder with ``ionosphere.csv`` or ``ionosphere.data``; default: the environment variable
        ``LPTML_DATA``.
    download : bool
        Whether the online source may be asked when neither the folder nor the cache has the file.
    return_X_y : bool
        Return ``(data, target)`` instead of a Bunch.

    Raises
    ------
    DatasetNotFound
        When no source has it; the message says what to download and where to put it.
    """
    return _from_uci(IONOSPHERE, folder, download, return_X_y)


def load_soybean(*, folder: str | None = None, download: bool = True, return_X_y: bool = False) -> Any:
    """Soybean (small): 47 plants, 35 features, 4 diseases. 14 features are constant, the centred rank is 19.

    Source: R. S. Michalski 1987, UCI Machine Learning Repository; not bundled (see the module's docstring).

    Parameters
    ----------
    folder : str, optional
        Folder with ``soybean-small.csv`` or ``soybean-small.data``; default: the environment variable
        ``LPTML_DATA``.
    download : bool
        Whether the online source may be asked when neither the folder nor the cache has the file.
    return_X_y : bool
        Return ``(data, target)`` instead of a Bunch.

    Raises
    ------
    DatasetNotFound
        When no source has it; the message says what to download and where to put it.
    """
    return _from_uci(SOYBEAN_SMALL, folder, download, return_X_y)


def make_synthetic(
    n_samples: int = 100,
    *,
    stretch: float = 40.0,
    random_state: int | np.random.Generator | None = None,
    return_X_y: bool = False,
) -> Any:
    """The paper's synthetic set: two Gaussians, one uninformative axis stretched.

    Points of a mixture of N((-3, 0), I), class 0, and N((3, 0), I), class 1; the second axis is then
    multiplied by ``stretch``.

    Parameters
    ----------
    n_samples : int
        Number of points, each from either Gaussian with probability one half; both classes are present.
    stretch : float
        Factor of the second axis.
    random_state : int, Generator or None
        The same seed gives the same points.
    return_X_y : bool
        Return ``(data, target)`` instead of a Bunch.

    Examples
    --------
    >>> from lptml.datasets import make_synthetic
    >>> make_synthetic(random_state=0).data.shape
    (100, 2)
    """
    rng = np.random.default_rng(random_state)
    X, y = _mixture(n_samples, stretch, rng)
    return _bunch("synthetic", _PAPER, X, y, np.zeros(y.size, dtype=bool), return_X_y)


def make_poisoned(
    n_samples: int = 100,
    *,
    n_poison: int = 5,
    centre: tuple[float, float] = (-100.0, 0.0),
    stretch: float = 40.0,
    random_state: int | np.random.Generator | None = None,
    return_X_y: bool = False,
) -> Any:
    """The paper's poisoned set: the synthetic one and a few points of class 1 planted far behind class 0.

    The planted points come from a Gaussian with identity covariance and mean ``centre``, before the stretch.

    Parameters
    ----------
    n_samples : int
        Number of honest points.
    n_poison : int
        Number of planted points, after the honest ones.
    centre : tuple of float
        Where they are planted.
    stretch : float
        Factor of the second axis.
    random_state : int, Generator or None
        The same seed gives the same points; the honest ones are those of :func:`make_synthetic` at that seed.
    return_X_y : bool
        Return ``(data, target)`` instead of a Bunch.

    Examples
    --------
    >>> from lptml.datasets import make_poisoned
    >>> poisoned = make_poisoned(random_state=0)
    >>> poisoned.data.shape, int(poisoned.poisoned.sum())
    ((105, 2), 5)
    """
    _check_count("n_poison", n_poison)
    rng = np.random.default_rng(random_state)
    X, y = _mixture(n_samples, stretch, rng)
    planted = (rng.standard_normal((n_poison, 2)) + centre) * (1.0, stretch)
    return _with_poison("poisoned", X, y, planted, np.ones(n_poison, dtype=np.intp), return_X_y)


def make_rotated_poisoned(
    n_samples: int = 100,
    *,
    n_poison: int = 5,
    centre: tuple[float, float] = (-100.0, 0.0),
    stretch: float = 40.0,
    angle: float | None = None,
    random_state: int | np.random.Generator | None = None,
    return_X_y: bool = False,
) -> Any:
    """The poisoned set under a rotation after the stretch: scaling each feature cannot mend it.

    Parameters
    ----------
    n_samples, n_poison, centre, stretch, random_state, return_X_y
        As in :func:`make_poisoned`, whose points at the same seed are the ones rotated.
    angle : float, optional
        Angle in radians; by default uniform in the middle half of a quadrant, so that no axis stays near an
        axis.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.datasets import make_poisoned, make_rotated_poisoned
    >>> rotated = make_rotated_poisoned(random_state=0).data
    >>> norms = np.linalg.norm(make_poisoned(random_state=0).data, axis=1)
    >>> bool(np.allclose(np.linalg.norm(rotated, axis=1), norms))
    True
    """
    rng = np.random.default_rng(random_state)
    result = make_poisoned(
        n_samples, n_poison=n_poison, centre=centre, stretch=stretch, random_state=rng, return_X_y=False
    )
    turn = rng.uniform(np.pi / 8, 3 * np.pi / 8) if angle is None else angle
    return _bunch(
        "rotated_poisoned",
        f"{_PAPER}, rotated",
        result.data @ _rotation(turn).T,
        result.target,
        result.poisoned,
        return_X_y,
    )


def make_scattered_poison(
    n_samples: int = 100,
    *,
    share: float = 0.1,
    radius: float = 100.0,
    stretch: float = 40.0,
    rotate: bool = True,
    random_state: int | np.random.Generator | None = None,
    return_X_y: bool = False,
) -> Any:
    """The synthetic set with poison at random positions: no single cluster that could be cut away.

    Each planted point lies uniformly in the disc of ``radius`` (before the stretch) and has a random class.

    Parameters
    ----------
    n_samples : int
        Number of honest points.
    share : float in [0, 0.5)
        Share of all points that are planted; 2 to 20% in the experiments.
    radius : float
        Radius of the disc.
    stretch : float
        Factor of the second axis.
    rotate : bool
        Rotate afterwards by a random angle, as in :func:`make_rotated_poisoned`.
    random_state : int, Generator or None
        The same seed gives the same points.
    return_X_y : bool
        Return ``(data, target)`` instead of a Bunch.

    Examples
    --------
    >>> from lptml.datasets import make_scattered_poison
    >>> int(make_scattered_poison(100, share=0.2, random_state=0).poisoned.sum())
    25
    """
    if not 0.0 <= share < 0.5:
        raise ValueError(f"share must lie in [0, 0.5), got {share!r}")
    rng = np.random.default_rng(random_state)
    X, y = _mixture(n_samples, stretch, rng)
    n_poison = round(share * n_samples / (1.0 - share))
    turn = rng.uniform(0.0, 2.0 * np.pi, n_poison)
    far = radius * np.sqrt(rng.random(n_poison))
    planted = np.column_stack([far * np.cos(turn), stretch * far * np.sin(turn)])
    labels = rng.integers(0, 2, n_poison)
    if rotate:
        R = _rotation(rng.uniform(np.pi / 8, 3 * np.pi / 8))
        X, planted = X @ R.T, planted @ R.T
    return _with_poison("scattered_poison", X, y, planted, labels, return_X_y)


LOADERS: dict[str, Callable[..., Any]] = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "ionosphere": load_ionosphere,
    "soybean": load_soybean,
    "synthetic": make_synthetic,
    "poisoned": make_poisoned,
    "rotated_poisoned": make_rotated_poisoned,
    "scattered_poison": make_scattered_poison,
}


def load(name: str, **options: Any) -> Any:
    """One of the data sets, by its name in :data:`LOADERS`.

    Examples
    --------
    >>> from lptml.datasets import load
    >>> load("wine").name
    'wine'
    """
    if name not in LOADERS:
        raise ValueError(f"unknown data set {name!r}; known are {sorted(LOADERS)}")
    return LOADERS[name](**options)


def _from_sklearn(loader: Callable[[], Any], name: str, author: str, return_X_y: bool) -> Any:
    found = loader()
    if return_X_y:
        return found.data, found.target
    found.update(name=name, source=f"{author}; UCI Machine Learning Repository; bundled with scikit-learn")
    return found


def _from_uci(table: UCITable, folder: str | None, download: bool, return_X_y: bool) -> Any:
    X, labels, where = fetch(table, folder=folder, download=download)
    classes, codes = np.unique(labels, return_inverse=True)
    if return_X_y:
        return X, codes
    return Bunch(
        data=X,
        target=codes,
        feature_names=list(table.feature_names),
        target_names=classes,
        name=table.name,
        source=f"{table.donor}; UCI Machine Learning Repository; read from {where}",
        DESCR=table.description,
    )


def _mixture(
    n_samples: int, stretch: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    _check_count("n_samples", n_samples, least=2)
    if not (np.isfinite(stretch) and stretch > 0):
        raise ValueError(f"stretch must be positive and finite, got {stretch!r}")
    y = rng.integers(0, 2, n_samples)  # (n,)
    if y.min() == y.max():
        y[0] = 1 - y[0]
    X = rng.standard_normal((n_samples, 2))  # (n, 2)
    X[:, 0] += np.where(y == 1, 3.0, -3.0)
    X[:, 1] *= stretch
    return X, y.astype(np.intp)


def _with_poison(
    name: str,
    X: NDArray[np.float64],
    y: NDArray[np.intp],
    planted: NDArray[np.float64],
    labels: NDArray[np.intp],
    return_X_y: bool,
) -> Any:
    poisoned = np.repeat([False, True], [y.size, labels.size])
    return _bunch(name, _PAPER, np.vstack([X, planted]), np.concatenate([y, labels]), poisoned, return_X_y)


def _bunch(
    name: str,
    source: str,
    X: NDArray[np.float64],
    y: NDArray[np.intp],
    poisoned: NDArray[np.bool_],
    return_X_y: bool,
) -> Any:
    if return_X_y:
        return X, y
    return Bunch(
        data=X,
        target=y,
        poisoned=poisoned,
        feature_names=["x", "y"],
        target_names=np.array(["left", "right"]),
        name=name,
        source=source,
        DESCR=f"{source}: {y.size} points in the plane, {int(poisoned.sum())} of them planted.",
    )


def _rotation(angle: float) -> NDArray[np.float64]:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def _check_count(name: str, value: int, least: int = 0) -> None:
    if int(value) != value or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
