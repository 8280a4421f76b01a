"""Constraints on a metric: where they come from, what violates them, what a metric costs.

The first step of the flow. ``ConstraintSet`` holds constraints one by one; ``LabelledPairs``,
``LabelledTriplets`` and ``IndexedPairs`` make them from points as they are needed. All of them are a
``Source``: they can be sampled and counted, which is all that the search asks for.
"""

from lptml.constraints.checks import Floats, Ints
from lptml.constraints.constraint_set import ConstraintSet, Source, factor, psd_factor, rows_at
from lptml.constraints.indexed_pairs import IndexedPairs
from lptml.constraints.labelled_pairs import LabelledPairs
from lptml.constraints.labelled_triplets import LabelledTriplets
from lptml.constraints.violation import TOLERANCE, Scaled

__all__ = [
    "TOLERANCE",
    "ConstraintSet",
    "Floats",
    "IndexedPairs",
    "Ints",
    "LabelledPairs",
    "LabelledTriplets",
    "Scaled",
    "Source",
    "factor",
    "psd_factor",
    "rows_at",
]
