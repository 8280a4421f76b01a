"""Cells and tables of the Markdown page."""

from __future__ import annotations

from typing import Any


def count_executions(table: dict[str, Any]) -> str:
    """How many executions the entries of a nested table rest on."""
    counts: set[int] = set()
    waiting = [table]
    while waiting:
        entry = waiting.pop()
        if "executions" in entry:
            counts.add(int(entry["executions"]))
        waiting += [each for each in entry.values() if isinstance(each, dict)]
    if not counts:
        return "no executions"
    number = str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
    return f"{number} execution{'' if max(counts) == 1 else 's'}"


def table_of(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)])


def title(name: str) -> str:
    """A data set's name as a heading."""
    return name.replace("_", " ").capitalize()


def with_deviation(entry: dict[str, float]) -> str:
    """A mean and its deviation, as fractions."""
    return f"{entry['mean']:.3f} ± {entry['deviation']:.3f}"


def fraction(entry: dict[str, float] | None) -> str:
    """A mean as a fraction; empty without one."""
    return "" if entry is None else f"{entry['mean']:.3f}"


def percent(entry: dict[str, float] | None) -> str:
    """A mean and its deviation in percent; empty without one."""
    return "" if entry is None else f"{100 * entry['mean']:.1f} ± {100 * entry['deviation']:.1f}"


def cpu(entry: dict[str, float] | None) -> str:
    """CPU seconds; empty where none were measured."""
    return "" if entry is None or "cpu_seconds" not in entry else f"{entry['cpu_seconds']:.3f}"


def three_ways(entry: dict[str, float] | None) -> str:
    """Accuracy under noise in percent: as it is, cleaned, clean."""
    if entry is None:
        return ""
    return " / ".join(f"{100 * entry[key]:.1f}" for key in ("as_it_is", "cleaned", "clean") if key in entry)
