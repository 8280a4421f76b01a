"""Votes whose worst case under wrong labels is known: who votes, what an attacker can do, attacks that try.

- ``voters``: which training points vote for a query, and with what weight; no label is looked at
- ``votes``: the decision, and how many labels or points must change before it can
- ``attacks``: the changes of labels that bend a decision with fewest flips, as far as they are found
"""

from lptml.certified.attacks import attack_labels
from lptml.certified.voters import Voters, find_voters
from lptml.certified.votes import Ballot, Outcome, decide, flip_radius, point_radius

__all__ = [
    "Ballot",
    "Outcome",
    "Voters",
    "attack_labels",
    "decide",
    "find_voters",
    "flip_radius",
    "point_radius",
]
