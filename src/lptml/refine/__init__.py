"""Refinement: from what the search found to a metric that violates less still, and how little is possible.

The fourth step of the flow: annealing of a bounded loss, exact line searches, the canonical metric with its
support, metrics that need no search, lower bounds on the cost of every metric.
"""

from lptml.refine.refinement import Refined, RefinementInterruptedWarning, refine
from lptml.refine.starts import default_starts

__all__ = ["Refined", "RefinementInterruptedWarning", "default_starts", "refine"]
