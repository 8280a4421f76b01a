"""Proofs in files: constraints, metric, bound and certificate in one archive, to be checked anywhere.

The archive is that of model files (``lptml._archive``), read with the same distrust. Nothing that a file says
is believed: ``read_proof`` checks its form, ``Certified.verify`` and ``check_cost`` what it claims.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lptml._archive import Archive, open_archive, write_archive
from lptml._version import __version__
from lptml.constraints import ConstraintSet, psd_factor
from lptml.proof.certificate import (
    EQUAL,
    CellCertificate,
    Certificate,
    Certified,
    LabelCertificate,
    PackingCertificate,
)
from lptml.proof.verify import CertificateError

_FORMAT = "lptml-proof-1"
_KIND = "proof of lptml"
_KINDS: dict[type, str] = {
    CellCertificate: "cells",
    PackingCertificate: "packing",
    LabelCertificate: "labels",
}
_NUMBERS = ("lower_bound", "cost", "total_weight", "seconds")


def write_proof(path: str | os.PathLike[str], certified: Certified) -> None:
    """Write a proof to a file, replacing what was there in one step.

    Examples
    --------
    >>> import os, tempfile
    >>> from lptml.proof import certify
    >>> pairs = ConstraintSet.from_differences([[1.0], [2.0]], [-1, +1], bounds=(1.0, 1.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "pairs.proof.npz")
    ...     write_proof(path, certify(pairs))
    ...     read_proof(path).verify()
    1.0
    """
    header = {
        "format": _FORMAT,
        "lptml": __version__,
        "certificate": _KINDS[type(certified.certificate)],
        **{name: float(getattr(certified, name)) for name in _NUMBERS},
    }
    c = certified.constraints
    arrays: dict[str, NDArray[Any]] = {"V": c.V, "sign": c.sign, "bound": c.bound, "weight": c.weight}
    if c.W is not None:
        arrays["W"] = c.W
    if certified.given_up is not None:
        arrays["given_up"] = certified.given_up
    write_archive(path, header, {**arrays, "A": certified.A, **certified.certificate.arrays})


def read_proof(path: str | os.PathLike[str]) -> Certified:
    """The proof in a file, of good form, but not verified.

    Raises
    ------
    ModelFileError
        When the file is something else, or damaged (a ValueError).
    """
    with open_archive(path, _KIND) as archive:
        header = archive.header
        if not isinstance(header, dict) or header.get("format") != _FORMAT:
            raise ValueError(f"its header does not say {_FORMAT!r}")
        numbers: list[Any] = [header.get(name) for name in _NUMBERS]
        if not all(type(number) is float and 0 <= number < np.inf for number in numbers):
            raise ValueError("its bound, cost, weight and seconds must be numbers that are not negative")
        kind = header.get("certificate")
        if kind not in _KINDS.values():
            raise ValueError("its certificate is of an unknown kind")
        constraints = _constraints(archive)
        A = _array(archive, "A", np.float64, (constraints.d,) * 2)
        psd_factor(A)
        certificate: Certificate
        if kind == "cells":
            certificate = _cells(archive, constraints.d)
        else:
            certificate = _contradictions(archive, constraints.n, kind == "labels")
        given_up = None
        if "given_up" in archive.names:
            given_up = _array(archive, "given_up", np.int64, (None,))
        if (given_up is None) != (kind != "labels"):
            raise ValueError("given_up belongs to proofs about labels")
        lower_bound, cost, total_weight, seconds = numbers
        if isinstance(certificate, LabelCertificate):
            if total_weight != certificate.points.max() + 1:
                raise ValueError("the weight of a proof about labels is the number of points")
        elif total_weight < (1.0 - EQUAL) * constraints.total_weight:
            raise ValueError("the constraints weigh more than all are said to")
        return Certified(
            lower_bound=lower_bound,
            A=A,
            cost=cost,
            constraints=constraints,
            total_weight=total_weight,
            certificate=certificate,
            seconds=seconds,
            given_up=given_up,
        )


def _cells(archive: Archive, d: int) -> CellCertificate:
    return CellCertificate(
        _array(archive, "T", np.float64, (d, d)), _array(archive, "codes", np.int8, (None,))
    )


def _contradictions(archive: Archive, n: int, of_labels: bool) -> PackingCertificate | LabelCertificate:
    starts, members = (_array(archive, name, np.int64, (None,)) for name in ("starts", "members"))
    multipliers = _array(archive, "multipliers", np.float64, (len(members),))
    if not of_labels:
        shares = _array(archive, "shares", np.float64, (None,))
        return PackingCertificate(starts, members, multipliers, shares)
    points = _array(archive, "points", np.int64, (n, 2))
    if not np.array_equal(points, np.argwhere(np.triu(np.ones((points.max() + 1,) * 2), 1))):
        raise ValueError("points must be those of all pairs, in their order")
    return LabelCertificate(starts, members, multipliers, points)


def _constraints(archive: Archive) -> ConstraintSet:
    V = archive.take("V")
    if V.ndim != 2 or not V.size:
        raise ValueError("V must be a matrix")
    n = len(V)
    W = _array(archive, "W", np.float64, V.shape) if "W" in archive.names else None
    sign = _array(archive, "sign", np.int8, (n,))
    bound, weight = (_array(archive, name, np.float64, (n,)) for name in ("bound", "weight"))
    if V.dtype != np.float64 or not np.isfinite(V).all():
        raise ValueError("V must hold finite numbers")
    if not np.isin(sign, (-1, 1)).all() or not (bound > 0).all() or not (weight > 0).all():
        raise ValueError("signs must be 1 or -1, bounds and weights positive")
    return ConstraintSet(V=V, W=W, sign=sign, bound=bound, weight=weight)


def _array(archive: Archive, name: str, dtype: type, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """An array of a type and a shape, in which None is any length."""
    array = archive.take(name)
    fits = array.ndim == len(shape) and all(b in (None, a) for a, b in zip(array.shape, shape))
    if array.dtype != dtype or not fits or not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be of type {dtype.__name__} and shape {shape}, and hold finite numbers"
        )
    return array


def check_cost(certified: Certified) -> None:
    """Count anew what the metric of a proof violates.

    Raises
    ------
    CertificateError
        If it violates something else than the proof says. Where the file holds a part of very many
        constraints, the cost of this part must not be above that of all.
    """
    c = certified.constraints
    if isinstance(certified.certificate, LabelCertificate):
        assert certified.given_up is not None, "a proof about labels gives up points"
        kept = ~np.isin(certified.certificate.points, certified.given_up).any(axis=1)
        if c.violated(certified.A)[kept].any() or len(set(certified.given_up.tolist())) != certified.cost:
            raise CertificateError("the metric violates more than the points that were given up explain")
        return
    counted = float(c.cost(certified.A))
    wrong = counted - certified.cost
    if wrong > EQUAL * certified.cost or (certified.is_whole and -wrong > EQUAL * certified.cost):
        raise CertificateError(f"the metric violates {counted:g}, not {certified.cost:g}")
