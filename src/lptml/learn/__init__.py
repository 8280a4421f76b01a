"""From constraints to a metric: search, refinement, shrinkage and support in one call."""

from lptml.learn.learned import Learned
from lptml.learn.pipeline import learn

__all__ = ["Learned", "learn"]
