"""lptml: Mahalanobis metric learning that survives wrong and poisoned labels.

Names are imported when first used, so ``import lptml`` costs next to nothing and the compiled parts are
loaded by the first ``fit``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lptml._version import __version__

if TYPE_CHECKING:
    from lptml.baselines import (
        ITML,
        LFDA,
        LMNN,
        MCML,
        MMC,
        RCA,
        ITML_Supervised,
        MMC_Supervised,
        RCA_Supervised,
    )
    from lptml.constraints import ConstraintSet
    from lptml.estimators import (
        LPTML,
        LPTMLCV,
        LPTML_Quadruplets,
        LPTML_Supervised,
        LPTML_SupervisedCV,
        LPTML_Triplets,
    )
    from lptml.estimators.certified import CertifiedKNeighborsClassifier
    from lptml.estimators.io import load, save
    from lptml.estimators.label_cleaner import LabelCleaner
    from lptml.estimators.robust import RobustKNeighborsClassifier
    from lptml.noise.outlying import outlyingness
    from lptml.noise.suspects import suspects, suspicion
    from lptml.report.corrections import apply_corrections, read_corrections

_HOME = {
    "lptml.estimators": [
        "LPTML",
        "LPTMLCV",
        "LPTML_Supervised",
        "LPTML_SupervisedCV",
        "LPTML_Triplets",
        "LPTML_Quadruplets",
    ],
    "lptml.estimators.certified": ["CertifiedKNeighborsClassifier"],
    "lptml.estimators.label_cleaner": ["LabelCleaner"],
    "lptml.estimators.robust": ["RobustKNeighborsClassifier"],
    "lptml.baselines": [
        "ITML",
        "ITML_Supervised",
        "LFDA",
        "LMNN",
        "MCML",
        "MMC",
        "MMC_Supervised",
        "RCA",
        "RCA_Supervised",
    ],
    "lptml.constraints": ["ConstraintSet"],
    "lptml.estimators.io": ["load", "save"],
    "lptml.noise.outlying": ["outlyingness"],
    "lptml.noise.suspects": ["suspects", "suspicion"],
    "lptml.report.corrections": ["apply_corrections", "read_corrections"],
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "ITML",
    "LFDA",
    "LMNN",
    "LPTML",
    "LPTMLCV",
    "MCML",
    "MMC",
    "RCA",
    "CertifiedKNeighborsClassifier",
    "ConstraintSet",
    "ITML_Supervised",
    "LPTML_Quadruplets",
    "LPTML_Supervised",
    "LPTML_SupervisedCV",
    "LPTML_Triplets",
    "LabelCleaner",
    "MMC_Supervised",
    "RCA_Supervised",
    "RobustKNeighborsClassifier",
    "__version__",
    "apply_corrections",
    "load",
    "outlyingness",
    "read_corrections",
    "save",
    "suspects",
    "suspicion",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'lptml' has no attribute {name!r}")
    return getattr(import_module(_MODULE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
