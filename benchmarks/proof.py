"""What is proven, in what time, on the instances of ``benchmarks/instances``.

    python -m benchmarks.proof                # every instance: the table of docs/proofs.md
    python -m benchmarks.proof iris-4         # some, by the beginning of their names
    python -m benchmarks.proof time iris-4    # how the gap closes with time
    python -m benchmarks.proof others         # enumeration and a mixed-integer program, on small ones
    python -m benchmarks.proof labels         # how many labels of Iris and Wine must be wrong
    python -m benchmarks.proof make           # write the instances anew

CPU seconds are those of the process, both threads together; limits are wall time, of two cores. Whatever is
proven is verified before it is printed, and better costs and bounds than those known are written to
``benchmarks/instances/known.json``.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from lptml.constraints import ConstraintSet, LabelledPairs
from lptml.datasets import load
from lptml.learn.pipeline import learn
from lptml.proof import certify, certify_labels, check_cost

FOLDER = Path(__file__).parent / "instances"
KNOWN = FOLDER / "known.json"

#: Seconds by the beginning of the name.
LIMITS = {"iris-4": 120.0, "wine-13": 300.0, "random-2": 120.0}


def half(name: str, d: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The training half of a data set, projected on its leading directions."""
    X, y = load(name, return_X_y=True, **({"random_state": 0} if name in ("synthetic", "poisoned") else {}))
    X, y = np.asarray(X, dtype=float), np.unique(y, return_inverse=True)[1]
    if d is not None:
        X = PCA(d).fit_transform(X)
    X, _, y, _ = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    return X, y


def random_pairs(n: int, d: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Differences judged by a hidden metric, a share of the labels turned round, and the bound."""
    rng = np.random.default_rng([n, d, seed])
    V = rng.normal(size=(n, d))
    values = ((V @ rng.normal(size=(d, d))) ** 2).sum(axis=1)
    y = np.where(values < np.median(values), 1, -1)
    y[: round(share * n)] *= -1
    return V, y, float(np.sqrt(np.median(values)))


def make() -> None:
    """Write every instance: points and labels with (u, l), or the recipe of random pairs."""
    FOLDER.mkdir(exist_ok=True)
    for name, d in (
        ("iris", 2),
        ("wine", 2),
        ("synthetic", 2),
        ("poisoned", 2),
        ("iris", None),
        ("wine", None),
    ):
        X, y = half(name, d)
        percentiles = tuple(np.percentile(pdist(X), [10, 90]).tolist())
        for kind, bounds in (("equal", (1.0, 1.0)), ("percentiles", percentiles)):
            if d is None and kind == "percentiles":
                continue
            content = {"bounds": bounds, "labels": y.tolist(), "points": X.tolist()}
            (FOLDER / f"{name}-{X.shape[1]}-{kind}.json").write_text(json.dumps(content) + "\n")
    recipes = [(100_000, 2, 0.1, 0)] + [
        (500, d, share, s) for d, share in ((3, 0.1), (4, 0.05)) for s in range(10)
    ]
    for n, d, share, seed in recipes:
        content = {"n": n, "d": d, "share": share, "seed": seed}
        (FOLDER / f"random-{d}-{n}-{seed}.json").write_text(json.dumps({"random_pairs": content}) + "\n")


def read(name: str) -> ConstraintSet:
    """The constraints of an instance."""
    content = json.loads((FOLDER / f"{name}.json").read_text())
    if "random_pairs" in content:
        V, y, u = random_pairs(*content["random_pairs"].values())
        return ConstraintSet.from_differences(V, y, bounds=(u, u))
    X, y = np.array(content["points"]), np.array(content["labels"])
    pairs = LabelledPairs.from_labels(X, y, bounds=tuple(content["bounds"]))
    return pairs.take(np.arange(pairs.n))


def names(begin: list[str]) -> list[str]:
    every = sorted(path.stem for path in FOLDER.glob("*-*.json"))
    return [name for name in every if not begin or name.startswith(tuple(begin))]


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def table(begin: list[str]) -> None:
    """Cost, bound and time of every instance."""
    certify(read("synthetic-2-equal"), time_limit=1.0)  # compiles
    print(
        "| instance | n | cost | bound | cost / bound | CPU s | verified in |\n|---|---|---|---|---|---|---|"
    )
    for name in names(begin):
        constraints = read(name)
        limit = next((s for start, s in LIMITS.items() if name.startswith(start)), 60.0)
        began = cpu()
        # Search finds cheaper metrics than refinement alone (Wine: 128, not 131); cells find their own.
        A = learn(constraints, random_state=0).A if constraints.d > 3 else None
        found = certify(constraints, A, time_limit=limit, gap=0.01 if name.startswith("random-2") else 0.0)
        seconds, began = cpu() - began, cpu()
        found.verify()
        check_cost(found)
        print(
            f"| {name} | {constraints.n} | {found.cost:g} | {found.lower_bound:g} | {found.ratio:.3f} "
            f"| {seconds:.1f} | {cpu() - began:.1f} |",
            flush=True,
        )
        remember(name, found.cost, found.lower_bound)


def remember(name: str, cost: float, bound: float) -> None:
    """Keep the best that is known."""
    known = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    before = known.get(name, {"cost": cost, "bound": bound})
    known[name] = {"cost": min(cost, before["cost"]), "bound": max(bound, before["bound"])}
    KNOWN.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def over_time(begin: list[str]) -> None:
    """Bound and cost at doubling CPU times."""
    for name in names(begin):
        constraints, began = read(name), cpu()
        due = [1.0]

        def tell(bound: float, cost: float, name: str = name, began: float = began, due: list = due) -> None:
            if cpu() - began >= due[0]:
                print(f"| {name} | {cpu() - began:.0f} | {cost:g} | {bound:g} |", flush=True)
                due[0] = 2 * (cpu() - began)

        found = certify(constraints, time_limit=LIMITS.get(name[: name.rindex("-")], 60.0), callback=tell)
        print(f"| {name} | {cpu() - began:.0f} | {found.cost:g} | {found.lower_bound:g} |", flush=True)


def others(limit: float = 60.0) -> None:
    """Enumeration of all vertices, and a mixed-integer program with big-M constraints solved by HiGHS."""
    print("| d | n | ours: cost, bound, CPU s | vertices | HiGHS: cost, bound, CPU s |")
    print("|---" * 5 + "|")
    for d, n in ((2, 50), (2, 200), (2, 1000), (3, 50), (3, 500), (4, 50), (4, 200), (4, 500)):
        V, y, u = random_pairs(n, d, 0.05 if d > 3 else 0.1, 0)
        pairs = ConstraintSet.from_differences(V, y, bounds=(u, u))
        began = cpu()
        found = certify(pairs, time_limit=limit)
        ours = cpu() - began
        began = cpu()
        cost, bound = big_m(V, y, u, limit)
        vertices = float(np.prod([(n - k) / (k + 1) for k in range(d * (d + 1) // 2)]))
        print(
            f"| {d} | {n} | {found.cost:g}, {found.lower_bound:g}, {ours:.1f} | {vertices:.1e} "
            f"| {cost}, {bound:.1f}, {cpu() - began:.1f} |",
            flush=True,
        )


def big_m(V: np.ndarray, y: np.ndarray, u: float, limit: float) -> tuple[str, float]:
    """Cost and bound of min sum z, y_i (<v_i v_i', A> - u^2) <= M z_i over symmetric A with bounded entries.

    A need not be semidefinite, so the bound holds for metrics as well, and the cost may be too low for them.
    """
    d = V.shape[1]
    rows, columns = np.triu_indices(d)
    C = V[:, rows] * V[:, columns] * np.where(rows == columns, 1.0, 2.0) / u**2  # (n, D)
    largest = 20.0  # of the entries of A
    M = 1.0 + largest * np.abs(C).sum(axis=1)
    matrix = sparse.hstack([sparse.csr_matrix(y[:, None] * C), sparse.diags(-M)])
    n, D = C.shape
    answer = milp(
        np.concatenate([np.zeros(D), np.ones(n)]),
        constraints=LinearConstraint(matrix, ub=y.astype(float)),
        integrality=np.concatenate([np.zeros(D), np.ones(n)]),
        bounds=Bounds(
            np.concatenate([np.full(D, -largest), np.zeros(n)]),
            np.concatenate([np.full(D, largest), np.ones(n)]),
        ),
        options={"time_limit": limit},
    )
    return "none" if answer.x is None else f"{answer.fun:.0f}", float(answer.mip_dual_bound or 0.0)


def labels() -> None:
    """Labels that must be wrong."""
    print("| data | points | must be wrong | suffice | CPU s | verified in |\n|---|---|---|---|---|---|")
    for name in ("iris", "wine"):
        X, y = half(name, None)
        began = cpu()
        found = certify_labels(X, y, time_limit=300.0)
        seconds, began = cpu() - began, cpu()
        found.verify()
        check_cost(found)
        print(
            f"| {name} | {len(X)} | {found.lower_bound:g} | {found.cost:g} "
            f"| {seconds:.1f} | {cpu() - began:.1f} |",
            flush=True,
        )


def main(arguments: list[str]) -> None:
    """Run what is asked for."""
    what = arguments[0] if arguments else ""
    if what == "time":
        over_time(arguments[1:])
    elif what in ("others", "labels", "make"):
        {"others": others, "labels": labels, "make": make}[what]()
    else:
        table(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
