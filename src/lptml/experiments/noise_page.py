"""The section of the page about wrong labels."""

from __future__ import annotations

from typing import Any

from lptml.experiments.markdown import count_executions, table_of, three_ways, title


def noise_section(record: dict[str, Any], images: str) -> str:
    """Tables by data set, ours against the best peer, and who finds the wrong labels."""
    summary, options = record["summary"], record["options"]
    accuracy = summary["accuracy"]
    others = [kind for kind in accuracy if kind != "uniform"]
    blocks = []
    for name in accuracy["uniform"]:
        blocks.append(f"**{title(name)}, uniform noise**\n\n{_three_ways_table(accuracy, ['uniform'], name)}")
    for name in accuracy["uniform"]:
        blocks.append(f"**{title(name)}, other attacks**\n\n{_three_ways_table(accuracy, others, name)}")
    return f"""
## Label noise

Share of wrong training labels; clean test labels; {count_executions(summary["suspects"])} (up to
{options["noise_repeats"]} under uniform noise, {options["few_repeats"]} under the other attacks, 2 under the
adaptive one). Each cell is accuracy in %, three ways: as it is / with the k-NN labels cleaned by our suspects
/ with clean k-NN labels. The attacks are those of `lptml.noise`: "clusters" flips neighbourhoods of five
points, "neighborhood" one whole region, "class" is a systematic annotator, "confident" flips the most obvious
labels, "planted" moves points 30 standard deviations away; "adaptive" knows the method and the test points
and searches for the flips that make the last of the three numbers lowest, so each method there has labels of
its own (and `LPTML robust k-NN`, which is no metric, has none). "planted pairs" are 1,000 pairs of training
points, some of which are pulled 30 root mean squares apart along one direction and called similar: those that
learn from pairs (LPTML: `LPTMLCV`) get them, and neighbours vote with their true labels.

![accuracy under label noise]({images}/noise.png)

{chr(10).join(block + chr(10) for block in blocks)}
Ours, as they are, against the best peer (Euclidean included) of the same line, in points, paired over
executions:

{table_of(["data", "noise", "ours", "best peer", "difference", "standard error"], _differences(summary))}

How well wrong labels are found, area under the ROC curve, uniform noise (peers: share of the 10 nearest
neighbours under their metric with another label):

{_suspects(summary)}
"""


def _three_ways_table(accuracy: dict[str, Any], kinds: list[str], name: str) -> str:
    """Methods by kinds and shares, on one data set."""
    found = {kind: accuracy[kind].get(name, {}) for kind in kinds}
    columns = [(kind, share) for kind in kinds for share in next(iter(found[kind].values()), {})]
    head = [
        f"{100 * float(share):.0f}%" if len(kinds) == 1 else _attack(kind, share) for kind, share in columns
    ]
    rows = [
        [method, *(three_ways(found[kind].get(method, {}).get(share)) for kind, share in columns)]
        for method in accuracy["uniform"][name]
    ]
    return table_of(["method", *head], rows)


def _attack(kind: str, share: str) -> str:
    return f"{kind} {100 * float(share):.0f}%"


def _differences(summary: dict[str, Any]) -> list[list[str]]:
    return [
        [
            title(row["dataset"]),
            _attack(row["kind"], row["share"]),
            row["ours"],
            row["best_peer"],
            f"{100 * row['mean']:+.1f}",
            f"{100 * row['error']:.1f}",
        ]
        for row in summary["ours_minus_best_peer"]
    ]


def _suspects(summary: dict[str, Any]) -> str:
    found = summary["suspects"].get("uniform", {})
    if not found:
        return ""
    rows = []
    for name, by_method in found.items():
        for method, by_share in by_method.items():
            rows.append([title(name), method, *(f"{entry['mean']:.3f}" for entry in by_share.values())])
    shares = list(next(iter(next(iter(found.values())).values())))
    return table_of(["data", "method", *(f"{100 * float(share):.0f}%" for share in shares)], rows)
