"""Greedy grouping: buckets of L rows, closed as soon as one diversity test passes.

**Lemma (greedy).** Greedy grouping with buckets of L rows and L-diversity for one set of values as its only
requirement, plain or extended at random, keeps the belief in any of these values below (L/(L−1))^(L−1)/L.

*Proof.* A published group of m ≥ 2 buckets holds exactly m positives, its first i < m buckets at least i + 1 of them.
Counting the worlds by the positives of the first bucket gives L·p = ∏ (mL−1−j)/(mL−m−j), j = 1 … L−1, for the belief
p of its rows, which does not decrease in m and has the limit (L/(L−1))^(L−1); beliefs do not rise along the buckets
[Cormode et al. 2010, corrected]. Extended at random: condition on the first bucket at which the group could have been
closed; up to there it is a plain group, and rows after it hold what is left. ∎

**Conditions.** Buckets of L rows, L whole and at least 2; every requirement about sizes is met by a bucket; the order
of rows follows from quasi-identifiers. People of a last group that never passed are dropped because of their values:
where there are any, nothing is guaranteed.

**Checked** by `tests/worlds/test_group_beliefs.py` and `tests/promise/test_method.py`, by enumeration.
"""

from __future__ import annotations

from maskwright.domain.promise import Lemma
from maskwright.worlds.counting.group_beliefs import greedy_ceiling

GREEDY = Lemma(
    "greedy",
    "an adversary who knows the method believes a value of the tested set with less than (L/(L−1))^(L−1)/L",
    (
        "one diversity test on one set of values is the only look at values",
        "buckets of L rows, L whole and at least 2, that meet every requirement about sizes",
        "no last group was dropped",
    ),
    "tests/promise/test_method.py::test_greedy_stays_below_its_ceiling",
    __name__,
    lambda ell: (greedy_ceiling(int(ell)), True),
)
