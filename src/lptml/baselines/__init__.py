"""The learners that LPTML is compared with, behind the same estimator interface.

========  =========================  ==============================================================
learner   after                      problem
========  =========================  ==============================================================
ITML      Davis et al. 2007          closest to a prior in LogDet divergence, slack bounds
LMNN      Weinberger and Saul 2009   pull target neighbours, push impostors (hinge)
MMC       Xing et al. 2003           similar pairs close in sum, dissimilar ones far in sum
MCML      Globerson and Roweis 2006  collapse classes: softmax neighbours in the own class
LFDA      Sugiyama 2007              local Fisher discriminant (closed form)
RCA       Bar-Hillel et al. 2005     whiten within chunklets (closed form)
========  =========================  ==============================================================

All of them are deterministic, bounded in iterations and in memory, and say so when they did not converge
(``sklearn.exceptions.ConvergenceWarning``). NCA is scikit-learn's.
"""

from lptml.baselines.itml import ITML, ITML_Supervised
from lptml.baselines.lfda import LFDA
from lptml.baselines.lmnn import LMNN
from lptml.baselines.mcml import MCML
from lptml.baselines.mmc import MMC, MMC_Supervised
from lptml.baselines.rca import RCA, RCA_Supervised

__all__ = [
    "ITML",
    "LFDA",
    "LMNN",
    "MCML",
    "MMC",
    "RCA",
    "ITML_Supervised",
    "MMC_Supervised",
    "RCA_Supervised",
]
