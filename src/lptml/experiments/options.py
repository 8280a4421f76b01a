"""Every parameter of the experiments, with the paper's value as the default where the paper has one."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Options:
    """What to run and how much of it.

    Attributes
    ----------
    folder : Path
        Where results go.
    repeats : int
        Executions of the accuracy table and of the poisoning figure (paper: 50).
    few_repeats : int
        Executions of the figures over iterations and dimensions (paper: 10), and under attacks on
        labels other than uniform noise.
    noise_repeats : int
        Executions under uniform label noise.
    folds, neighbors : int
        2-fold cross-validation and k-NN with k = 4, as in the paper.
    trials : int
        t of the plain search in the accuracy table (paper: 2000), where the dimension is at most
        ``plain_dimension``.
    plain_dimension : int
        Above it the plain search gets ``trials * plain_dimension^3 / d^3`` trials (at least 20): its cost per
        trial grows about with d^3, and the table would otherwise consist of it.
    pairs : int
        Pairs of each kind for the plain search; 0 takes all pairs, the limit of the paper's uniform sample.
    most_points : int
        Larger data sets are cut to a fresh random sample of this size in every execution.
    n_jobs : int
        Worker processes.
    seed : int
        Everything random derives from it.
    data : str or None
        Folder with Ionosphere and Soybean; else LPTML_DATA, the cache or the network.
    datasets, methods : tuple of str
        Restrict the experiments to these; all when empty.
    workers : tuple of int
        Numbers of workers in the parallel figure.
    minutes : float or None
        Start no new piece of work after this long; what is done by then is what the results are of. Pieces
        are ordered by execution, so that it is a number of executions of everything.
    resume : bool
        Keep the rows of an earlier run with the same options.
    """

    folder: Path = Path("reproduction")
    mode: str = "full"
    repeats: int = 50
    few_repeats: int = 10
    noise_repeats: int = 20
    folds: int = 2
    neighbors: int = 4
    trials: int = 2000
    plain_dimension: int = 8
    pairs: int = 0
    most_points: int = 300
    n_jobs: int = 2
    seed: int = 0
    data: str | None = None
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    workers: tuple[int, ...] = (1, 2)
    minutes: float | None = None
    resume: bool = True

    def __post_init__(self) -> None:
        for name in (
            "repeats", "few_repeats", "noise_repeats", "neighbors", "trials", "plain_dimension", "n_jobs",
        ):  # fmt: skip
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.folds < 2:
            raise ValueError(f"folds must be at least 2, got {self.folds}")
        if self.pairs < 0 or self.most_points < 20:
            raise ValueError("pairs must not be negative and most_points at least 20")
        if self.minutes is not None and not self.minutes > 0:
            raise ValueError(f"minutes must be positive, got {self.minutes}")
        if not self.workers or min(self.workers) < 1:
            raise ValueError(f"workers must be positive, got {self.workers}")

    @classmethod
    def full(cls, **changes: Any) -> Options:
        """The paper's numbers of executions, within an hour."""
        return replace(cls(n_jobs=min(2, os.cpu_count() or 1), minutes=55.0), **changes)

    @classmethod
    def quick(cls, **changes: Any) -> Options:
        """Everything, but little of it: the whole path in two minutes."""
        few = cls(
            mode="quick",
            repeats=1,
            few_repeats=1,
            noise_repeats=1,
            trials=50,
            most_points=120,
            n_jobs=min(2, os.cpu_count() or 1),
        )
        return replace(few, **changes)

    @property
    def is_quick(self) -> bool:
        """Whether sweeps are thinned out as well."""
        return self.mode == "quick"

    def plain_trials(self, d: int) -> int:
        """Trials of the plain search in d dimensions."""
        if d <= self.plain_dimension:
            return self.trials
        return max(min(20, self.trials), round(self.trials * (self.plain_dimension / d) ** 3))

    def as_dict(self) -> dict[str, Any]:
        """Everything that decides the results, for the JSON file and to recognise an earlier run."""
        kept = asdict(self)
        for name in ("folder", "n_jobs", "resume", "data", "minutes"):
            kept.pop(name)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in kept.items()}
