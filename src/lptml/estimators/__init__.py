"""Scikit-learn estimators: metric learners from pairs, labelled points, triplets and quadruplets."""
