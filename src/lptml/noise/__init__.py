"""Wrong labels, points and pairs on purpose: the attacks behind every experiment on noise and poison.

Each attack is a function that is given the data and a share and touches exactly ``round(share * n)`` points
or pairs, so that a share is a share and not an expectation; it says which ones, and the same seed gives the
same attack.

==============================  ================================================================
:func:`flip_uniform`            points drawn uniformly; each gets one of the other classes
:func:`flip_by_class`           a systematic annotator: the rate depends on the class, and the
                                wrong label is always the next class
:func:`flip_clusters`           many small neighbourhoods of one class, given the closest other
:func:`relabel_neighborhood`    one large neighbourhood, all given one class
:func:`flip_confident`          the points whose label is the most obvious
:func:`plant_points`            points moved far away, with a wrong label
:func:`flip_pairs`              labels of pairs, reversed
:func:`plant_pairs`             pairs pulled far apart along one direction and called similar
:func:`adaptive_flips`          the flips that hurt a given learner most, found by refitting it
==============================  ================================================================

:func:`flip_labels` is the door to those that change labels only, by name.
"""

from lptml.noise._common import Flipped, Planted
from lptml.noise.adaptive import AdaptiveFlips, adaptive_flips
from lptml.noise.labels import (
    NoiseKind,
    flip_by_class,
    flip_clusters,
    flip_confident,
    flip_labels,
    flip_uniform,
    relabel_neighborhood,
)
from lptml.noise.pairs import flip_pairs, plant_pairs
from lptml.noise.points import plant_points

__all__ = [
    "AdaptiveFlips",
    "Flipped",
    "NoiseKind",
    "Planted",
    "adaptive_flips",
    "flip_by_class",
    "flip_clusters",
    "flip_confident",
    "flip_labels",
    "flip_pairs",
    "flip_uniform",
    "plant_pairs",
    "plant_points",
    "relabel_neighborhood",
]
