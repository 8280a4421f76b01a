"""Plots of learned metrics, after scikit-learn's Display convention; see :mod:`lptml.plots.displays`."""

from lptml.plots.displays import (
    CertifiedAccuracyDisplay,
    EmbeddingDisplay,
    FeatureWeightsDisplay,
    PairDistancesDisplay,
    SearchHistoryDisplay,
    SuspicionDisplay,
)

__all__ = [
    "CertifiedAccuracyDisplay",
    "EmbeddingDisplay",
    "FeatureWeightsDisplay",
    "PairDistancesDisplay",
    "SearchHistoryDisplay",
    "SuspicionDisplay",
]
