"""Scikit-learn estimators: metric learners from pairs, labelled points, triplets and quadruplets."""

from lptml.estimators.pairs import LPTML
from lptml.estimators.pairs_cv import LPTMLCV
from lptml.estimators.quadruplets import LPTML_Quadruplets
from lptml.estimators.supervised import LPTML_Supervised
from lptml.estimators.supervised_cv import LPTML_SupervisedCV
from lptml.estimators.triplets import LPTML_Triplets

__all__ = [
    "LPTML",
    "LPTMLCV",
    "LPTML_Quadruplets",
    "LPTML_Supervised",
    "LPTML_SupervisedCV",
    "LPTML_Triplets",
]
