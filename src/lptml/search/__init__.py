"""The search, the paper's Algorithm 2: solve random samples exactly, keep the metric that violates least.

The third step of the flow. ``algorithm2`` is the algorithm on one screen, ``trial`` its steps, ``run`` what
surrounds it: engines, limits, progress and checkpoints.
"""

from lptml.search.algorithm2 import algorithm2
from lptml.search.result import History, SearchInterruptedWarning, SearchProgress, SearchResult, SearchStatus
from lptml.search.run import CheckpointWarning, search
from lptml.search.trial import Candidate

__all__ = [
    "Candidate",
    "CheckpointWarning",
    "History",
    "SearchInterruptedWarning",
    "SearchProgress",
    "SearchResult",
    "SearchStatus",
    "algorithm2",
    "search",
]
