"""The version, read by the build and by ``lptml version``."""

__version__ = "0.1.0"
