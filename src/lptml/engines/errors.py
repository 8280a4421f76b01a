"""What can go wrong on a cluster, under names that a caller can catch."""

from __future__ import annotations


class EngineLost(RuntimeError):
    """The cluster itself is gone: its scheduler, its driver process, or worker after worker.

    What the search had found is in its checkpoint, if it had one; start it again with the same checkpoint
    on a cluster that lives, or on ``engine="local"``, and it ends with the metric of an undisturbed run.
    """


class PartitionError(ValueError):
    """Partitioned data that cannot be used: a wrong column, a key without a point, rows that change."""
