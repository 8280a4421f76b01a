"""From constraints to a metric: search, refinement, shrinkage and support in one call."""

from lptml.learn.learned import Learned
from lptml.learn.pipeline import compile_now, learn

__all__ = ["Learned", "compile_now", "learn"]
