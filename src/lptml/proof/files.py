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
from lptml.proof.certificate import CellCertificate, Certified, Proof
from lptml.proof.verify import CertificateError

_FORMAT = "lptml-proof-1"
_KIND = "proof of lptml"
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
    if not isinstance(certified.certificate, CellCertificate):
        raise ValueError(f"a {type(certified.certificate).__name__} cannot be written")
    header = {
        "format": _FORMAT,
        "lptml": __version__,
        "certificate": "cells",
        "proof": certified.proof.name,
        **{name: float(getattr(certified, name)) for name in _NUMBERS},
    }
    c = certified.constraints
    arrays: dict[str, NDArray[Any]] = {"V": c.V, "sign": c.sign, "bound": c.bound, "weight": c.weight}
    if c.W is not None:
        arrays["W"] = c.W
    arrays |= {"A": certified.A, "T": certified.certificate.T, "codes": certified.certificate.codes}
    write_archive(path, header, arrays)


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
        if header.get("certificate") != "cells" or header.get("proof") not in Proof.__members__:
            raise ValueError("its certificate is of an unknown kind")
        constraints = _constraints(archive)
        d = constraints.d
        A, T = (_array(archive, name, "f", (d, d)) for name in ("A", "T"))
        psd_factor(A)
        codes = archive.take("codes")
        if codes.dtype != np.int8 or codes.ndim != 1:
            raise ValueError("codes must be a list of small whole numbers")
        lower_bound, cost, total_weight, seconds = numbers
        return Certified(
            lower_bound=lower_bound,
            A=A,
            cost=cost,
            constraints=constraints,
            total_weight=total_weight,
            certificate=CellCertificate(T, codes),
            proof=Proof[header["proof"]],
            seconds=seconds,
        )


def _constraints(archive: Archive) -> ConstraintSet:
    V = archive.take("V")
    if V.ndim != 2 or not V.size:
        raise ValueError("V must be a matrix")
    n = len(V)
    W = _array(archive, "W", "f", V.shape) if "W" in archive.names else None
    sign = _array(archive, "sign", "i", (n,))
    bound, weight = (_array(archive, name, "f", (n,)) for name in ("bound", "weight"))
    if V.dtype != np.float64 or not np.isfinite(V).all():
        raise ValueError("V must hold finite numbers")
    if not np.isin(sign, (-1, 1)).all() or not (bound > 0).all() or not (weight > 0).all():
        raise ValueError("signs must be 1 or -1, bounds and weights positive")
    return ConstraintSet(V=V, W=W, sign=sign, bound=bound, weight=weight)


def _array(archive: Archive, name: str, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    array = archive.take(name)
    dtype = {"f": np.float64, "i": np.int8}[kind]
    if array.dtype != dtype or array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must have shape {shape} and hold finite numbers")
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
    counted = float(c.cost(certified.A))
    whole = abs(c.total_weight - certified.total_weight) <= 1e-9 * certified.total_weight
    wrong = counted - certified.cost
    if wrong > 1e-9 * certified.cost or (whole and -wrong > 1e-9 * certified.cost):
        raise CertificateError(f"the metric violates {counted:g}, not {certified.cost:g}")
