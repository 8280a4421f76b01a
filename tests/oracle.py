"""Ground truth for small instances: the least cost of any metric, by enumeration of all bases.

By LP-type theory the best metric is the optimum w(B) of some basis B of at most D = d(d+1)/2 constraints,
where w minimises the trace. A basis whose optimum is positive definite has D tight constraints, and a
linear solve gives it. The others have their optimum on the curved boundary of the cone and fewer
constraints than D (a metric of rank r has r(d - r) + r(r+1)/2 < D degrees of freedom); a semidefinite
program gives them, solved by Clarabel through its own interface. Nothing here comes from lptml, not even
the counting.

Run as a script, it computes what ``data/oracle.json`` lacks; the tests read that file.
"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import clarabel
import numpy as np
from scipy import sparse

CACHE = Path(__file__).parent / "data" / "oracle.json"
KINDS = ("clean", "flipped 10%", "flipped 30%", "outliers")
RATIOS = (0.1, 0.5, 1.0, 2.0)
COUNTS = {2: 300, 3: 50}  # instances by dimension
_TOLERANCE = 1e-7  # relative to the bound: what counts as violated


def instance(d: int, seed: int) -> tuple[np.ndarray, np.ndarray, tuple[float, float], str]:
    """Difference vectors (n, d), labels (n,), bounds (u, l) and a name; kinds and ratios take turns."""
    rng = np.random.default_rng([d, seed])
    kind, ratio = KINDS[seed % 4], RATIOS[seed // 4 % 4]
    n = int(rng.integers(30, 61)) if d == 2 else 20
    u, l = ratio, 1.0
    L = rng.normal(size=(d, d)) * np.exp(rng.normal(size=d))[:, None]  # the hidden metric
    V = rng.normal(size=(n, d))
    hidden = np.exp(rng.uniform(np.log(0.2 * min(u, l)), np.log(4.0 * max(u, l)), size=n))
    gap = (hidden > u) & (hidden < l)  # neither similar nor dissimilar: push it out of the gap
    hidden[gap] = np.where(rng.random(gap.sum()) < 0.5, u * 0.9, l * 1.1)
    V *= (hidden / np.linalg.norm(V @ L.T, axis=1))[:, None]
    y = np.where(hidden <= np.sqrt(u * l), 1, -1)
    if kind.startswith("flipped"):
        share = 0.1 if "10" in kind else 0.3
        y[rng.permutation(n)[: round(share * n)]] *= -1
    elif kind == "outliers":
        wrong = rng.permutation(n)[: round(0.1 * n)]
        V[wrong] *= np.where(y[wrong] > 0, 5.0, 0.2)[:, None]
    return V, y, (u, l), f"d={d} seed={seed} n={n} {kind} u/l={ratio}"


def least_cost(V: np.ndarray, y: np.ndarray, bounds: tuple[float, float]) -> int:
    """The least number of violated constraints over all positive semidefinite matrices."""
    n, d = V.shape
    rows, columns = np.triu_indices(d)
    D = len(rows)
    C = V[:, rows] * V[:, columns] * np.where(rows == columns, 1.0, 2.0)  # (n, D)
    b = np.where(y > 0, bounds[0] ** 2, bounds[1] ** 2)
    size = np.linalg.norm(C, axis=1)
    C, b = C / size[:, None], b / size

    def violated(a: np.ndarray) -> np.ndarray:
        """Counts for metrics given as rows of coordinates."""
        return ((y * (a @ C.T - b)) > _TOLERANCE * b).sum(axis=1)

    best = int((y < 0).sum())  # A = 0
    for start in range(n - D + 1):
        best = min(best, _full_rank(C, b, start, violated))
    for size_of_basis in range(1, D):
        for basis in combinations(range(n), size_of_basis):
            if best == 0:
                return 0
            chosen = list(basis)
            if (y[chosen] > 0).all():
                continue  # upper bounds alone leave the optimum at zero
            a = _basis_optimum(C[chosen], y[chosen], b[chosen], d)
            if a is not None:
                best = min(best, int(violated(a[None])[0]))
    return best


def _full_rank(C: np.ndarray, b: np.ndarray, first: int, violated) -> int:
    """The least count over vertices whose first tight constraint is this one."""
    n, D = C.shape
    d = round((np.sqrt(8 * D + 1) - 1) / 2)
    rest = np.array(list(combinations(range(first + 1, n), D - 1)), dtype=np.int64).reshape(-1, D - 1)
    basis = np.concatenate([np.full((len(rest), 1), first), rest], axis=1)
    M = C[basis]  # (k, D, D)
    regular = np.abs(np.linalg.det(M)) > 1e-12
    if not regular.any():
        return n
    a = np.linalg.solve(M[regular], b[basis[regular]][..., None])[..., 0]  # (k, D)
    A = np.zeros((len(a), d, d))
    rows, columns = np.triu_indices(d)
    A[:, rows, columns] = A[:, columns, rows] = a
    eigenvalues = np.linalg.eigvalsh(A)
    a = a[eigenvalues[:, 0] >= -1e-12 * np.abs(eigenvalues).max(axis=1)]
    return int(violated(a).min()) if len(a) else n


def _basis_optimum(C: np.ndarray, y: np.ndarray, b: np.ndarray, d: int) -> np.ndarray | None:
    """Coordinates of the metric of least trace that satisfies these constraints; None if there is none."""
    rows, columns = np.triu_indices(d)
    m, D = C.shape
    # Clarabel stacks the upper triangle by columns, off-diagonal entries times sqrt(2).
    order = np.lexsort((rows, columns))
    factor = np.where(rows == columns, 1.0, np.sqrt(2.0))
    cone = np.zeros((D, D))
    cone[np.arange(D), order] = -factor[order]
    matrix = sparse.csc_matrix(np.vstack([y[:, None] * C / b[:, None], cone]))
    right = np.concatenate([y.astype(float), np.zeros(D)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    trace = np.where(rows == columns, 1.0, 0.0)
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((D, D)),
        trace,
        matrix,
        right,
        [clarabel.NonnegativeConeT(m), clarabel.PSDTriangleConeT(d)],
        settings,
    )
    solution = solver.solve()
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        return None
    return np.array(solution.x)


def cached() -> dict[str, int]:
    """Known optima by the name of the instance."""
    return json.loads(CACHE.read_text()) if CACHE.exists() else {}


def main() -> None:
    """Compute the optima that the cache lacks."""
    known = cached()
    for d, count in COUNTS.items():
        for seed in range(count):
            V, y, bounds, name = instance(d, seed)
            if name not in known:
                known[name] = least_cost(V, y, bounds)
                CACHE.parent.mkdir(exist_ok=True)
                CACHE.write_text(json.dumps(known, indent=0) + "\n")


if __name__ == "__main__":
    main()
