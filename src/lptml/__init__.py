"""lptml: Mahalanobis metric learning that survives wrong and poisoned labels."""

from lptml._version import __version__

__all__ = ["__version__"]
