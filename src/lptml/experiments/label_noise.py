"""Label noise of 0 to 40%, uniform and adversarial: accuracy of every method three ways, and who finds the
culprits.

Much of the loss under noise is k-NN's own, since its training labels are wrong too. So each metric, learned
from the noisy labels, is tested with three sets of k-NN labels: the noisy ones, the noisy ones without our
suspects, and the true ones. Test labels are always true.
"""

from __future__ import annotations

import time
import warnings
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
from lptml.noise import flip_labels

NAME = "noise"
TITLE = "Label noise"

_SETS = ("iris", "wine", "wine_standardised", "synthetic", "poisoned")
_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4)
_KINDS = ("uniform", "adversarial")
_VOTERS = 10  # neighbours whose labels a peer's suspicion is the dissent of
_TRIALS = 100  # t of the plain search here, as in the paper's poisoning experiment
_WAYS = ("as_it_is", "cleaned", "clean")


def tasks(options: Options) -> tuple[list[dict[str, Any]], list[str]]:
    """One task a data set, kind, share and execution; without noise both kinds are the same."""
    names, missing = available(_SETS, options)
    shares = (0.0, 0.2) if options.is_quick else _SHARES
    repeats = {"uniform": options.noise_repeats, "adversarial": options.few_repeats}
    return [
        {"dataset": name, "kind": kind, "share": share, "repeat": repeat}
        for repeat in range(max(repeats.values()))
        for name in names
        for kind in _KINDS
        for share in shares
        if repeat < repeats[kind] and (share > 0 or kind == "uniform")
    ], missing


def work(task: dict[str, Any], options: Options) -> list[dict[str, Any]]:
    """All methods on the folds of one execution."""
    from lptml.trust import trust_labels

    name, repeat = task["dataset"], task["repeat"]
    X, y, planted = prepare(name, repeat, options)
    seed = seed_for(options.seed, NAME, name, repeat)  # the same folds and centres for every kind and share
    rows = []
    for number, fold in enumerate(folds(X, y, planted, options, seed)):
        noisy = flip_labels(fold.y, task["share"], kind=task["kind"], X=fold.X, random_state=seed + number)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            codes = np.unique(noisy.labels, return_inverse=True)[1]
            trust = trust_labels(fold.X, codes, codes.max() + 1)
            for method in methods.chosen(options):
                row = {"fold": number, "method": method, "noise_estimate": trust.noise_rate, "error": ""}
                start = time.process_time()
                try:
                    if method == methods.ROBUST:
                        model = methods.classifier(options, seed + number).fit(fold.X, noisy.labels)
                        row["as_it_is"] = float(model.score(fold.X_test, fold.y_test))
                        row["suspects"] = _found(trust.suspicion, noisy.flipped)
                    else:
                        learner = _learner(method, options, X.shape[1], seed + number)
                        learner.fit(fold.X, noisy.labels)
                        row.update(
                            _measure(learner, fold, noisy.labels, noisy.flipped, ~trust.suspects, options)
                        )
                except (ValueError, np.linalg.LinAlgError) as error:
                    row["error"] = f"{type(error).__name__}: {error}"[:300]
                row["cpu_seconds"] = time.process_time() - start
                rows.append(row)
    return rows


def _learner(method: str, options: Options, d: int, seed: int) -> Any:
    if method == methods.PLAIN:
        return methods.plain_search(options, d, seed, min(_TRIALS, options.plain_trials(d)))
    return methods.transformer(method, options, d, seed)


def _measure(
    learner: Any,
    fold: Fold,
    labels: NDArray[Any],
    flipped: NDArray[np.bool_],
    kept: NDArray[np.bool_],
    options: Options,
) -> dict[str, Any]:
    """Accuracy with noisy, cleaned and true k-NN labels; how well dissent of neighbours finds the flips."""
    Z, Z_test = learner.transform(fold.X), learner.transform(fold.X_test)
    if kept.sum() < options.neighbors:
        kept = np.ones_like(kept)
    found = {
        "as_it_is": methods.knn(options).fit(Z, labels).score(Z_test, fold.y_test),
        "cleaned": methods.knn(options).fit(Z[kept], labels[kept]).score(Z_test, fold.y_test),
        "clean": methods.knn(options).fit(Z, fold.y).score(Z_test, fold.y_test),
    }
    near = NearestNeighbors(n_neighbors=min(_VOTERS, len(Z) - 1)).fit(Z).kneighbors(return_distance=False)
    found["suspects"] = _found((labels[near] != labels[:, None]).mean(axis=1), flipped)
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
    names = list(accuracy["uniform"])
    kinds = [kind for kind in _KINDS if kind in accuracy]
    figure, axes = new_figure(len(kinds), len(names), (2.9 * len(names) + 1.6, 2.9 * len(kinds)), sharey=True)
    for row, kind in enumerate(kinds):
        for ax, name in zip(axes[row], names):
            for method in methods.chosen(options):
                clean = accuracy["uniform"][name].get(method, {}).get("0.0")
                found = dict(accuracy[kind][name].get(method, {}))
                if clean is not None:
                    found = {"0.0": clean, **found}
                ours = method in methods.OURS
                x = [100 * float(share) for share in found]
                ax.plot(
                    x,
                    [entry["as_it_is"] for entry in found.values()],
                    "-o",
                    color=COLOURS[method],
                    linewidth=2.2 if ours else 1.0,
                    markersize=4 if ours else 2.5,
                    label=method,
                    zorder=3 if ours else 2,
                )
            if row == 0:
                ax.set_title(name.replace("_", " "), fontsize=10)
            if row == len(kinds) - 1:
                ax.set_xlabel("wrong labels (%)")
        axes[row, 0].set_ylabel(f"{kind} noise\naccuracy of 4-NN")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    return save(figure, folder, NAME)
