"""Choosing between settings of a learner: cross-validation over a visible grid."""
