"""Wrong labels of every kind of :mod:`lptml.noise`: accuracy of every method three ways, and who finds the
culprits.

Much of the loss under noise is k-NN's own, since its training labels are wrong too. So each metric, learned
from the noisy labels, is tested with three sets of k-NN labels: the noisy ones, the noisy ones without our
suspects, and the true ones. Test labels are always true. The adaptive attacker knows the method it attacks
and the test points, and aims at the last of the three. Where pairs are planted no label of a point is wrong:
the learners of pairs are given pairs of the training points, and neighbours vote with their true labels.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from lptml.experiments import methods
from lptml.experiments.figures import COLOURS, new_figure, save
from lptml.experiments.options import Options
from lptml.experiments.protocol import Fold, available, folds, prepare, seed_for
from lptml.experiments.summaries import executions, paired, statistics
from lptml.noise import adaptive_flips, flip_labels, plant_pairs, plant_points
from lptml.noise.trust import Trust, trust_labels

NAME = "noise"
TITLE = "Label noise"

_SETS = ("iris", "wine", "wine_standardised", "synthetic", "poisoned")
_ADAPTIVE, _PLANTED, _PAIRS = "adaptive", "planted", "planted pairs"
_SHARES: dict[str, tuple[float, ...]] = {  # kind -> shares of wrong labels
    "uniform": (0.0, 0.1, 0.2, 0.3, 0.4),
    "clusters": (0.1, 0.2, 0.3, 0.4),
    "class": (0.2,),
    "neighborhood": (0.1,),
    "confident": (0.1,),
    _PLANTED: (0.05,),
    _ADAPTIVE: (0.05,),
    _PAIRS: (0.05,),
}
_QUICK = {"uniform": (0.0, 0.2), "clusters": (0.2,)}  # and the other kinds on the first data set only
_ATTACK_FITS, _QUICK_FITS = 12, 2  # refits of the adaptive attacker: each row costs as many as twelve others
_ATTACKED_REPEATS = 2  # and hence its few executions
_DRAWN = 1000  # pairs that learners of pairs are given
_VOTERS = 10  # neighbours whose labels a peer's suspicion is the dissent of
_TRIALS = 100  # t of the plain search here, as in the paper's poisoning experiment
_WAYS = ("as_it_is", "cleaned", "clean")


def tasks(options: Options) -> tuple[list[dict[str, Any]], list[str]]:
    """One task for each data set, kind, share and execution; no noise is the same for all kinds."""
    names, missing = available(_SETS, options)
    repeats = dict.fromkeys(_SHARES, options.few_repeats)
    repeats["uniform"] = options.noise_repeats
    repeats[_ADAPTIVE] = min(options.few_repeats, _ATTACKED_REPEATS)
    return [
        {"dataset": name, "kind": kind, "share": share, "repeat": repeat}
        for repeat in range(max(repeats.values()))
        for name in names
        for kind, shares in {**_SHARES, **(_QUICK if options.is_quick else {})}.items()
        if not options.is_quick or kind in _QUICK or name == names[0]
        for share in shares
        if repeat < repeats[kind]
    ], missing


@dataclass(frozen=True, eq=False)
class _Attacked:
    """A fold after an attack, and what our cleaning says about it."""

    fold: Fold  # as it is learned from; its labels are the true ones
    labels: NDArray[Any]  # (n,) as given
    wrong: NDArray[np.bool_]  # (n,)
    trust: Trust

    @classmethod
    def of(cls, fold: Fold, labels: NDArray[Any], wrong: NDArray[np.bool_]) -> _Attacked:
        codes = np.unique(labels, return_inverse=True)[1]
        return cls(fold, labels, wrong, trust_labels(fold.X, codes, codes.max() + 1))


def work(task: dict[str, Any], options: Options) -> list[dict[str, Any]]:
    """All methods on the folds of one execution."""
    name, repeat = task["dataset"], task["repeat"]
    X, y, planted = prepare(name, repeat, options)
    seed = seed_for(options.seed, NAME, name, repeat)  # the same folds and centres for every kind and share
    rows: list[dict[str, Any]] = []
    for number, fold in enumerate(folds(X, y, planted, options, seed)):
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if task["kind"] == _PAIRS:
                found = _of_pairs(task["share"], fold, options, seed + number)
                rows.extend({"fold": number, **row} for row in found)
                continue
            blind = task["kind"] != _ADAPTIVE
            attacked = _attack(task["kind"], task["share"], fold, seed + number) if blind else None
            for method in methods.chosen(options):
                if attacked is None and method == methods.ROBUST:  # no metric to judge: it votes by itself
                    continue
                rows.append({"fold": number, **_row(method, task, fold, attacked, options, seed + number)})
    return rows


def _row(
    method: str, task: dict[str, Any], fold: Fold, attacked: _Attacked | None, options: Options, seed: int
) -> dict[str, Any]:
    """One method on one fold; where nothing was attacked yet, by an attacker that knows the method."""
    row: dict[str, Any] = {"method": method, "error": ""}
    start = time.process_time()
    try:
        learner = None if method == methods.ROBUST else _learner(method, options, fold.X.shape[1], seed)
        if attacked is None:
            attacked = _attack_method(learner, task["share"], fold, options, seed)
            start = time.process_time()  # the attack is not the method's time
        row["noise_estimate"] = attacked.trust.noise_rate
        if learner is None:
            model = methods.classifier(options, seed).fit(attacked.fold.X, attacked.labels)
            row["as_it_is"] = float(model.score(fold.X_test, fold.y_test))
            row["suspects"] = _found(attacked.trust.suspicion, attacked.wrong)
        else:
            learner.fit(attacked.fold.X, attacked.labels)
            row.update(_measure(learner, attacked, options))
    except (ValueError, np.linalg.LinAlgError) as error:
        row["error"] = f"{type(error).__name__}: {error}"[:300]
    row["cpu_seconds"] = time.process_time() - start
    return row


def _attack(kind: str, share: float, fold: Fold, seed: int) -> _Attacked:
    if kind == _PLANTED:
        poisoned = plant_points(fold.X, fold.y, share, random_state=seed)
        return _Attacked.of(replace(fold, X=poisoned.points), poisoned.labels, poisoned.planted)
    noisy = flip_labels(fold.y, share, kind=kind, X=fold.X, random_state=seed)
    return _Attacked.of(fold, noisy.labels, noisy.flipped)


def _attack_method(learner: Any, share: float, fold: Fold, options: Options, seed: int) -> _Attacked:
    found = adaptive_flips(
        learner,
        fold.X,
        fold.y,
        share,
        fold.X_test,
        fold.y_test,
        n_fits=_QUICK_FITS if options.is_quick else _ATTACK_FITS,
        n_neighbors=options.neighbors,
        random_state=seed,
    )
    return _Attacked.of(fold, found.labels, found.flipped)


def _of_pairs(share: float, fold: Fold, options: Options, seed: int) -> list[dict[str, Any]]:
    """Accuracy under the metrics of pairs of training points, some of them planted far apart."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(len(fold.y), size=(2, _DRAWN))
    first, second = first[first != second], second[first != second]
    kind = np.where(fold.y[first] == fold.y[second], 1, -1)
    poisoned = plant_pairs(np.stack([fold.X[first], fold.X[second]], axis=1), kind, share, random_state=seed)
    rows = []
    for method, learner in methods.of_pairs(options, seed).items():
        row: dict[str, Any] = {"method": method, "error": ""}
        start = time.process_time()
        try:
            learner.fit(poisoned.points, poisoned.labels)
            voters = methods.knn(options).fit(learner.transform(fold.X), fold.y)
            row["as_it_is"] = float(voters.score(learner.transform(fold.X_test), fold.y_test))
        except (ValueError, np.linalg.LinAlgError) as error:
            row["error"] = f"{type(error).__name__}: {error}"[:300]
        rows.append(row | {"cpu_seconds": time.process_time() - start})
    return rows


def _learner(method: str, options: Options, d: int, seed: int) -> Any:
    if method == methods.PLAIN:
        return methods.plain_search(options, d, seed, min(_TRIALS, options.plain_trials(d)))
    return methods.transformer(method, options, d, seed)


def _measure(learner: Any, attacked: _Attacked, options: Options) -> dict[str, Any]:
    """Accuracy with noisy, cleaned and true k-NN labels; how well dissent of neighbours finds the flips."""
    fold, labels, kept = attacked.fold, attacked.labels, ~attacked.trust.suspects
    Z, Z_test = learner.transform(fold.X), learner.transform(fold.X_test)
    if kept.sum() < options.neighbors:
        kept = np.ones_like(kept)
    found = {
        "as_it_is": methods.knn(options).fit(Z, labels).score(Z_test, fold.y_test),
        "cleaned": methods.knn(options).fit(Z[kept], labels[kept]).score(Z_test, fold.y_test),
        "clean": methods.knn(options).fit(Z, fold.y).score(Z_test, fold.y_test),
    }
    near = NearestNeighbors(n_neighbors=min(_VOTERS, len(Z) - 1)).fit(Z).kneighbors(return_distance=False)
    found["suspects"] = _found((labels[near] != labels[:, None]).mean(axis=1), attacked.wrong)
    return found


def _found(score: NDArray[Any], flipped: NDArray[np.bool_]) -> float:
    return float(roc_auc_score(flipped, score)) if flipped.any() and not flipped.all() else float("nan")


def finish(rows: list[dict[str, Any]], options: Options, folder: Path) -> dict[str, Any]:
    """Means by kind, data set, method and share; ours against the best peer; the figure."""
    accuracy: dict[str, Any] = {}
    runs = {way: executions(rows, way, "kind", "dataset", "method", "share") for way in _WAYS}
    for way, by_key in runs.items():
        for (kind, name, method, share), values in by_key.items():
            cell = accuracy.setdefault(kind, {}).setdefault(name, {}).setdefault(method, {})
            entry = cell.setdefault(str(share), {})
            entry[way] = statistics(values)["mean"]
            entry[f"{way}_error"] = statistics(values)["error"]
    suspects: dict[str, Any] = {}
    for (kind, name, method, share), values in executions(
        rows, "suspects", "kind", "dataset", "method", "share"
    ).items():
        suspects.setdefault(kind, {}).setdefault(name, {}).setdefault(method, {})[str(share)] = statistics(
            values
        )
    return {
        "accuracy": accuracy,
        "suspects": suspects,
        "ours_minus_best_peer": _against(runs["as_it_is"]),
        "figures": _draw(accuracy, options, folder),
    }


def _against(runs: dict[tuple[Any, ...], dict[int, float]]) -> list[dict[str, Any]]:
    """LPTML and the robust classifier against the best peer, as they are, paired over executions."""
    rows = []
    for kind, name, share in sorted({(kind, name, share) for kind, name, _, share in runs}):
        peers = {method: runs.get((kind, name, method, share)) for method in ("Euclidean", *methods.PEERS)}
        present = {method: values for method, values in peers.items() if values}
        if not present:
            continue
        best = max(present, key=lambda method: np.mean(list(present[method].values())))
        for ours in (methods.DEFAULT, methods.ROBUST):
            mine = runs.get((kind, name, ours, share))
            if mine:
                difference = paired(mine, present[best])
                rows.append(
                    {
                        "kind": kind,
                        "dataset": name,
                        "share": share,
                        "ours": ours,
                        "best_peer": best,
                        **difference,
                    }
                )
    return rows


def _draw(accuracy: dict[str, Any], options: Options, folder: Path) -> list[str]:
    """Curves over the share where there are several; below them the other attacks side by side."""
    names = list(accuracy["uniform"])
    curves = [kind for kind in _SHARES if len(_SHARES[kind]) > 1 and kind in accuracy]
    single = [kind for kind in _SHARES if len(_SHARES[kind]) == 1 and kind in accuracy]
    height = len(curves) + bool(single)
    figure, axes = new_figure(height, len(names), (2.9 * len(names) + 1.6, 2.9 * height), sharey=True)
    for method in methods.chosen(options):
        ours = method in methods.OURS
        style: dict[str, Any] = {"color": COLOURS[method], "label": method, "zorder": 3 if ours else 2}
        for column, name in enumerate(names):
            clean = accuracy["uniform"][name].get(method, {}).get("0.0")
            for row, kind in enumerate(curves):
                found = dict(accuracy[kind].get(name, {}).get(method, {}))
                if clean is not None:
                    found = {"0.0": clean, **found}
                axes[row, column].plot(
                    [100 * float(share) for share in found],
                    [entry["as_it_is"] for entry in found.values()],
                    "-o",
                    linewidth=2.2 if ours else 1.0,
                    markersize=4 if ours else 2.5,
                    **style,
                )
            there = [
                (x, entry["as_it_is"])
                for x, kind in enumerate(single)
                for entry in accuracy[kind].get(name, {}).get(method, {}).values()
            ]
            if there:
                axes[-1, column].plot(*zip(*there), "o", markersize=5 if ours else 3, **style)
    for column, name in enumerate(names):
        axes[0, column].set_title(name.replace("_", " "), fontsize=10)
        axes[len(curves) - 1, column].set_xlabel("wrong labels (%)")
        if single:
            ticks = [f"{kind} {100 * _SHARES[kind][0]:.0f}%" for kind in single]
            axes[-1, column].set_xticks(range(len(single)), ticks, rotation=60, ha="right", fontsize=8)
    for row, kind in enumerate([*curves, "other"][:height]):
        axes[row, 0].set_ylabel(f"{kind} noise\naccuracy of 4-NN")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    return save(figure, folder, NAME)
