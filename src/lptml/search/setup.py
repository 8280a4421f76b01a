"""From the arguments of a search to the problem that its workers get."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from lptml.constraints import ConstraintSet, Floats, Source
from lptml.constraints.scaling import feature_scale
from lptml.exact import Objective, make_objective
from lptml.search.engine import PartitionedSource
from lptml.search.leaderboard import Leaderboard
from lptml.search.sampling import Sample, grid_steps, probability_grid, trial_rng
from lptml.search.trial import SearchProblem

#: Constraints that every candidate is scored on before the sequential test asks for more.
FIRST_ROWS = 1 << 12
#: Constraints that scales and the sequential test use at most; with fewer, all of them.
SCORED_ROWS = 1 << 17
#: Above this many constraints approximate counting is on by default; below, scoring all is cheap.
APPROXIMATE_FROM = 1 << 14
#: Constraints of a sample that are solved before the rest of it is looked at.
HEAD_ROWS = 1 << 10


_CHOICES = {
    "objective": ("trace", "random", "prior"),
    "strategy": ("multi", "pivot", "mtf", "plain"),
    "solver": ("numba", "clarabel"),
    "approximate_counting": ("auto", True, False),
}


@dataclass(frozen=True)
class Setup:
    """The options of a search that shape its trials; see ``search.search``."""

    epsilon: float = 0.5
    objective: str = "trace"
    prior: Floats | None = None
    strategy: str = "multi"
    solver: str = "numba"
    regularizer: Floats | None = None
    eta: float = 0.0
    approximate_counting: bool | str = "auto"
    delta: float = 0.05
    n_candidates: int = 8


@dataclass(frozen=True, eq=False)
class Prepared:
    """A search ready to run."""

    setup: Setup
    problem: SearchProblem
    scoring: ConstraintSet
    board: Leaderboard
    fingerprint: str


def check_arguments(
    source: Source | PartitionedSource,
    setup: Setup,
    max_trials: int,
    trials_per_level: int | None,
    time_limit: float | None,
    target_cost: float | None,
) -> None:
    """Every ValueError of ``search`` but those of the engine and the checkpoint."""
    if source.n < 1:
        raise ValueError("there are no constraints to search with")
    _check_whole("max_trials", max_trials, 0)
    if trials_per_level is not None:
        _check_whole("trials_per_level", trials_per_level, 1)
    _check_whole("n_candidates", setup.n_candidates, 1)
    for name, choices in _CHOICES.items():
        if getattr(setup, name) not in choices:
            listed = ", ".join(map(repr, choices))
            raise ValueError(f"{name} must be one of {listed}; got {getattr(setup, name)!r}")
    for name, value in (("time_limit", time_limit), ("target_cost", target_cost), ("eta", setup.eta)):
        if value is not None and not 0 <= value < np.inf:
            raise ValueError(f"{name} must be a number that is not negative, got {value!r}")
    if not 0 < setup.delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {setup.delta!r}")
    if setup.regularizer is not None and setup.eta == 0:
        raise ValueError("regularizer has no effect without eta: give eta > 0")
    if setup.prior is not None and setup.objective != "prior":
        raise ValueError(f"prior has no effect with objective={setup.objective!r}: use objective='prior'")
    for name, matrix in (("prior", setup.prior), ("regularizer", setup.regularizer)):
        if matrix is not None:
            _check_semidefinite(name, np.asarray(matrix), source.d)


def _check_whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def _check_semidefinite(name: str, matrix: Floats, d: int) -> None:
    if matrix.shape != (d, d) or not np.isfinite(matrix).all():
        raise ValueError(f"{name} must be a finite matrix of shape ({d}, {d}), got shape {matrix.shape}")
    size = np.abs(matrix).max(initial=0.0)
    if (
        np.abs(matrix - matrix.T).max() > 1e-9 * size
        or np.linalg.eigvalsh(matrix)[0] < -1e-9 * size
        or size == 0
    ):
        raise ValueError(f"{name} must be symmetric, positive semidefinite and not zero")


def make_entropy(random_state: int | np.random.Generator | np.random.RandomState | None) -> int:
    """The seed that all trials spawn from."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(1 << 31, dtype=np.int64))
    _check_whole("random_state", random_state, 0)
    return int(random_state)


def prepare(source: Source | PartitionedSource, setup: Setup, entropy: int) -> Prepared:
    """Choose what candidates are scored on, scale the features, lay out the grids."""
    n, d = int(source.n), int(source.d)
    scoring = _scoring_rows(source, entropy)
    approximate = n > APPROXIMATE_FROM if setup.approximate_counting == "auto" else setup.approximate_counting
    rows = _level_rows(scoring.n) if approximate and n > FIRST_ROWS else []
    guesses = R = None
    if setup.eta > 0:
        R = np.eye(d) if setup.regularizer is None else np.array(setup.regularizer, dtype=np.float64)
        guesses = regularizer_guesses(R, setup.eta, setup.epsilon, scoring, source.trivial_costs()[0])
    scale = feature_scale(scoring.take(slice(0, APPROXIMATE_FROM)))
    problem = SearchProblem(
        n=n,
        d=d,
        entropy=entropy,
        levels=probability_grid(n, setup.epsilon),
        objective=_fixed_objective(setup, scoring, scale),
        feature_scale=scale,
        strategy=setup.strategy,
        solver=setup.solver,
        scored=scoring.take(slice(0, rows[0])) if rows else scoring,
        head=HEAD_ROWS,
        exact_counts=not rows and scoring.n < n,
        paired_counts=bool(rows),
        regularizer=R,
        eta=setup.eta,
        guesses=guesses,
        source=None if isinstance(source, PartitionedSource) else source,
    )
    board = Leaderboard(n, scoring, rows, setup.n_candidates, setup.delta)
    return Prepared(setup, problem, scoring, board, _fingerprint(problem, scoring, rows, setup.n_candidates))


def _scoring_rows(source: Source | PartitionedSource, entropy: int) -> ConstraintSet:
    """All constraints when they are few, else a random sample of them in random order."""
    if source.n <= FIRST_ROWS:
        index = np.arange(source.n, dtype=np.int64)
    else:
        key = int(trial_rng(entropy, 0, 0, 0).integers(1 << 64, dtype=np.uint64))
        index = Sample(source.n, source.n, key).head(SCORED_ROWS)
    if isinstance(source, PartitionedSource):
        return source.take_batch([index])[0]
    if isinstance(source, ConstraintSet) and source.n <= FIRST_ROWS:
        return source
    return source.take(index)


def _fixed_objective(setup: Setup, scoring: ConstraintSet, scale: Floats) -> Objective | None:
    """The objective of all trials in original features; None when each draws its own."""
    if setup.objective == "random":
        return None
    objective = make_objective(setup.objective, scoring.d, prior=setup.prior)
    return replace(objective, matrix=objective.linear_part(scoring, scale), original_units=True)


def _level_rows(available: int) -> list[int]:
    rows = [FIRST_ROWS]
    while rows[-1] < available:
        rows.append(min(4 * rows[-1], available))
    return rows


def regularizer_guesses(
    R: Floats, eta: float, epsilon: float, constraints: ConstraintSet, zero: float
) -> Floats:
    """The grid of guesses (1+eps)^i of <R, A*> (Theorem 2.4), in ascending order.

    A* costs no more than A = 0, so eta <R, A*> <= cost(0). And it meets some lower bound, else A = 0 were
    as good; for that one <R, A*> >= bound / (v' R^-1 v).
    """
    highest = zero / eta
    lower = constraints.take(constraints.sign < 0)
    eigenvalues, Q = np.linalg.eigh(R)
    inverse = 1.0 / np.maximum(eigenvalues, 1e-12 * eigenvalues[-1])  # (d,)
    reach = ((lower.V @ Q) ** 2 @ inverse) / lower.bound  # (m,)
    lowest = max(1.0 / float(reach.max(initial=1e-300)), 1e-9 * highest)
    if not 0 < lowest < highest:
        return np.array([max(highest, 1e-300)])
    count = math.ceil(grid_steps(highest / lowest, epsilon))
    return highest * (1.0 + epsilon) ** -np.arange(count + 1.0)[::-1]  # (guesses,)


def _fingerprint(problem: SearchProblem, scoring: ConstraintSet, rows: list[int], keep: int) -> str:
    """What must be the same for a checkpoint to fit: the options and the scored constraints."""
    digest = hashlib.sha256(repr((rows, keep)).encode())
    objective = problem.objective
    options = {f.name: getattr(problem, f.name) for f in fields(problem)}
    del options["scored"], options["source"]
    options["objective"] = None if objective is None else (objective.kind, objective.matrix.tolist())
    for name, value in options.items():
        digest.update(f"{name}=".encode())
        digest.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    for array in (scoring.V, scoring.W, scoring.sign, scoring.bound, scoring.weight):
        if array is not None:
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()
