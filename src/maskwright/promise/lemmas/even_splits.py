"""Even splits: parts that differ by at most one row, and one diversity test.

**Lemma (even split).** A method tries one split per group, into children of s and s or s−1 rows, each with at least L
rows, and publishes the group when a child violates L-diversity for one set of values. Then an adversary who knows the
method believes any of these values with less than 1/(L−1). So running it with L = l + 1 keeps belief below 1/l.

*Proof.* Worlds permute values inside published groups, so that splits that were accepted above a published group tell
nothing; only its own refused split does. Let r be the positives of the group, at most its rows ÷ L, and j those of
them in the smaller child. Refusal keeps the worlds with j or r−j beyond its threshold. Pair the worlds j = i and j =
r−i for i ≤ r−i: their weights are C(s−1, i)·C(s, r−i) and C(s−1, r−i)·C(s, i), in the ratio (s−i)/(s−r+i) ≥ 1. Over a
pair the smaller child holds on average at most r/2 positives, the larger at most s·r/(2s−r). Unpaired is at most the
one kind of world j = q where s = qL, in which only the smaller child violates, and q ≥ 2 because it has at least L
rows. Hence the smaller child's belief is at most max(r/2, q)/(s−1) ≤ 1/(L−1/2), and the larger's at most r/(2s−r) <
1/(L−1). For equal children it is exactly r/(2s) ≤ 1/L. ∎

**Conditions.** The test is the only decision that looks at sensitive values: no other model, one set of values, no
second dimension after a refusal, nobody dropped because of values, groups not divided further.

**Checked** by `tests/promise/test_method.py` and `tests/worlds/test_group_beliefs.py`, by enumeration.
"""

from __future__ import annotations

from maskwright.domain.promise import Lemma
from maskwright.worlds.counting.group_beliefs import even_split_bound

EVEN_SPLIT = Lemma(
    "even split",
    "an adversary who knows the method believes a value of the tested set with less than 1/(L−1)",
    (
        "one diversity test on one set of values is the only look at values",
        "one split per group, into two children that differ by at most one row, each of at least L rows",
        "nobody is dropped because of values",
    ),
    "tests/promise/test_method.py::test_even_splits_with_one_more_stay_below",
    __name__,
    lambda ell: (even_split_bound(ell), ell >= 2),
)
