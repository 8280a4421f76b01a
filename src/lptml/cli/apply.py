"""``lptml transform``, ``distance`` and ``score``: a stored metric meets a table."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from lptml.cli.errors import InputError
from lptml.cli.learner import embed, features, load_model
from lptml.cli.options import (
    DATA,
    Sectioned,
    common,
    force_option,
    label_option,
    load_table,
    need_one_of,
    pairs_option,
    reading,
    tuples_options,
)
from lptml.cli.output import check_outputs, emit, note, table_kind, write_columns
from lptml.cli.pairs import Pairs, Tuples, read_pairs, read_tuples
from lptml.cli.prepare import check_labels, row_names
from lptml.points.nearest import majority

MODEL = click.Path(dir_okay=True)
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1)  # flipped labels, of --certify
KEY = click.option("--key", metavar="COLUMN", help="The column that names the rows.")
OUTPUT = click.option(
    "-o", "--output", default="-", metavar="FILE", help=".csv, .tsv, .parquet or .npz; - is standard output."
)


@click.command(cls=Sectioned)
@click.argument("model", type=MODEL)
@click.argument("data", type=DATA)
@OUTPUT
@force_option
@KEY
@reading
@common
def transform(
    model: str,
    data: str,
    output: str,
    force: bool,
    key: str | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Map the rows of DATA into the space where the metric of MODEL is the Euclidean distance.

    \b
    Examples:
      lptml transform wine.model.npz new.csv -o mapped.csv
      cat new.csv | lptml transform wine.model.npz - > mapped.csv
    """
    check_outputs((output, table_kind(output)), inputs=(model, data), force=force)
    learned = load_model(model)
    table = load_table(data, options)
    Z = embed(learned, features(learned, table, (key,)))  # (n, k)
    header = [f"z{j + 1}" for j in range(Z.shape[1])]
    if as_json:
        names = row_names(table, key)
        emit({"columns": header, "names": names, "rows": Z}, as_json=True, text=str)
        return
    columns: list[Any] = list(Z.T)
    if key is not None:
        header, columns = [key, *header], [row_names(table, key), *columns]
    write_columns(output, header, columns)
    if output != "-":
        note(f"{output}: {len(Z)} rows, {Z.shape[1]} columns", quiet=quiet)


@click.command(cls=Sectioned)
@click.argument("model", type=MODEL)
@click.argument("data", type=DATA)
@click.option(
    "--pairs", type=DATA, required=True, metavar="FILE", help="Two keys on each line; a label is ignored."
)
@OUTPUT
@force_option
@KEY
@reading
@common
def distance(
    model: str,
    data: str,
    pairs: str,
    output: str,
    force: bool,
    key: str | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Distances between the rows of DATA that FILE pairs, and whether the metric calls them similar.

    Without --key the keys are row numbers, from 1.

    \b
    Examples:
      lptml distance bottles.model.npz bottles.csv --key id --pairs asked.csv
    """
    check_outputs((output, table_kind(output)), inputs=(model, data, pairs), force=force)
    learned = load_model(model)
    table = load_table(data, options)
    names = row_names(table, key)
    asked = read_pairs(pairs, names, key=key, need_label=False)
    apart = _distances(learned, features(learned, table, (key,)), asked)  # (m,)
    header = ["first", "second", "distance"]
    columns: list[Any] = [[names[i] for i in asked.index[:, 0]], [names[j] for j in asked.index[:, 1]], apart]
    threshold = getattr(learned, "threshold_", None)
    if threshold is not None:
        header.append("similar")
        columns.append(["yes" if d <= threshold else "no" for d in apart])
    if as_json:
        emit(dict(zip(header, columns)), as_json=True, text=str)
        return
    write_columns(output, header, columns)
    if output != "-":
        note(f"{output}: {len(apart)} distances", quiet=quiet)


@click.command(cls=Sectioned)
@click.argument("model", type=MODEL)
@click.argument("data", type=DATA)
@label_option
@pairs_option
@tuples_options
@KEY
@click.option(
    "--n-neighbors", type=click.IntRange(min=1), default=4, show_default=True, help="Neighbours that vote."
)
@click.option("--certify", is_flag=True, help="Also how many wrong labels each answer provably survives.")
@reading
@common
def score(
    model: str,
    data: str,
    label: str | None,
    pairs: str | None,
    triplets: str | None,
    quadruplets: str | None,
    key: str | None,
    n_neighbors: int,
    certify: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """How well the metric of MODEL predicts the labels of DATA, of pairs of its rows, or comparisons of them.

    With --label: leave-one-out accuracy of the k-NN rule, and that of the Euclidean distance. With --pairs:
    ROC AUC of the distances and accuracy at the model's threshold. With --triplets or --quadruplets: the
    share of comparisons that the metric gets right. Use rows that fit has not seen.

    --certify asks MODEL, if it is a CertifiedKNeighborsClassifier. No learned metric has a certificate, so of
    other models it says what such a classifier would have: each half of DATA certifies the other.

    \b
    Examples:
      lptml score wine.model.npz held-out.csv --label class
      lptml score wine.model.npz held-out.csv --label class --certify
      lptml score bottles.model.npz bottles.csv --key id --pairs held-out-pairs.csv
    """
    learned = load_model(model)
    table = load_table(data, options)
    need_one_of(label, pairs, table, triplets=triplets, quadruplets=quadruplets)
    compared, said = triplets or quadruplets, []
    label = None if pairs or compared else label or table.roles.get("label")
    X = features(learned, table, (key, label))
    if certify and (pairs or compared):
        raise click.UsageError("--certify is for labels: give --label with it")
    if compared:
        told = read_tuples(compared, row_names(table, key), key=key, width=3 if triplets else 4)
        result = _score_tuples(learned, X, told)
    elif pairs:
        result = _score_pairs(learned, X, read_pairs(pairs, row_names(table, key), key=key))
    else:
        assert label is not None
        y = check_labels(table, label)
        result = _score_labels(learned, X, y, n_neighbors)
        if certify:
            result |= _certify(learned, X, y)
            said = ["Certified at 5%: right, and still right whichever 5% of the training labels change."]
    emit(
        result,
        as_json=as_json,
        text=lambda: "\n".join(
            [*(f"{k.replace('_', ' '):28} {_shown(v)}" for k, v in result.items()), *said]
        ),
    )


def _score_labels(model: Any, X: np.ndarray[Any, Any], y: np.ndarray[Any, Any], k: int) -> dict[str, Any]:
    from lptml.constraints.labelled_pairs import LabelledPairs

    result: dict[str, Any] = {
        "rows": len(y),
        "accuracy": leave_one_out(embed(model, X), y, k),
        "euclidean_accuracy": leave_one_out(X, y, k),
    }
    bounds = getattr(model, "bounds_", None)
    if bounds is not None:
        codes = np.unique(y, return_inverse=True)[1]
        Z = embed(model, X)
        pairs = LabelledPairs.from_labels(Z, codes, bounds=tuple(bounds))
        result["violation_rate"] = float(pairs.cost(np.eye(Z.shape[1]))) / pairs.total_weight
    return result


def _certify(model: Any, X: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Certified accuracy by the share of flipped training labels, and what the median answer survives."""
    from lptml.estimators.certified import CertifiedKNeighborsClassifier, budget_counts, cross_certify

    if isinstance(model, CertifiedKNeighborsClassifier):
        model.__dict__.pop("feature_names_in_", None)  # compared with the columns of the table before
        radius, n = model.certified_radius(X), len(model.points_)
        right = model.predict(X).astype(str) == y.astype(str)  # labels of a table are texts
        accuracy = np.array([np.mean(right & (radius >= r)) for r in budget_counts(SHARES, n)])
    else:
        found = cross_certify(X, y, SHARES)
        accuracy, radius, n = found.accuracy, found.radius, found.n_training
    certified = {f"certified_at_{100 * share:g}%": float(a) for share, a in zip(SHARES, accuracy)}
    return {**certified, "median_flips_survived": int(np.median(radius)), "of_training_labels": n}


def _score_pairs(model: Any, X: np.ndarray[Any, Any], pairs: Pairs) -> dict[str, Any]:
    from sklearn.metrics import roc_auc_score

    assert pairs.y is not None
    if len(np.unique(pairs.y)) < 2:
        raise InputError("every label is the same; a score needs similar and dissimilar pairs", "--pairs")
    apart = _distances(model, X, pairs)
    plain = np.linalg.norm(X[pairs.index[:, 0]] - X[pairs.index[:, 1]], axis=1)
    weight = pairs.weight
    result: dict[str, Any] = {
        "pairs": len(apart),
        "roc_auc": float(roc_auc_score(pairs.y, -apart, sample_weight=weight)),
        "euclidean_roc_auc": float(roc_auc_score(pairs.y, -plain, sample_weight=weight)),
    }
    threshold = getattr(model, "threshold_", None)
    if threshold is not None:
        right = np.where(apart <= threshold, 1, -1) == pairs.y
        result["accuracy"] = float(np.average(right, weights=weight))
    return result


def _score_tuples(model: Any, X: np.ndarray[Any, Any], told: Tuples) -> dict[str, Any]:
    """The share of comparisons that are in the right order; a tie is half right."""
    result: dict[str, Any] = {told.kind: len(told.index)}
    first = told.index[:, :2]
    second = told.index[:, [0, 2]] if told.index.shape[1] == 3 else told.index[:, 2:]
    for name, Z in (("accuracy", embed(model, X)), ("euclidean_accuracy", X)):
        near, far = (np.linalg.norm(Z[i[:, 0]] - Z[i[:, 1]], axis=1) for i in (first, second))
        right = (np.sign(far - near) + 1) / 2
        result[name] = float(np.average(right, weights=told.weight))
    return result


def leave_one_out(Z: np.ndarray[Any, Any], y: np.ndarray[Any, Any], k: int) -> float:
    """Accuracy of the k-NN rule on the points Z (n, d), each judged by the others."""
    from sklearn.neighbors import NearestNeighbors

    finder = NearestNeighbors(n_neighbors=min(k, len(Z) - 1)).fit(Z)
    near = finder.kneighbors(return_distance=False)  # (n, k), without itself
    codes = np.unique(y, return_inverse=True)[1]
    return float(np.mean(majority(codes, near) == codes))


def _distances(model: Any, X: np.ndarray[Any, Any], pairs: Pairs) -> np.ndarray[Any, Any]:
    Z = embed(model, X)
    return np.asarray(np.linalg.norm(Z[pairs.index[:, 0]] - Z[pairs.index[:, 1]], axis=1))


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"
