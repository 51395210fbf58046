"""Gates: a check that follows from what is published tells nothing that the release does not show.

**Lemma (gates).** Let a method keep a bound on belief. Publish its release only if a function of the published tables
says so, and nothing otherwise. Then the bound holds for what is published.

*Proof.* Given the release, the function has the same value in every world that could have led to it. So knowing that
it said yes excludes no world, and changes no probability. ∎

**What is not a function of what is published**, and so voids the label: a reference distribution that counts people
who are not in the release (gates therefore compare with the distribution of those who are); the number of *people*
with a value where people have several rows, because which rows are whose is not published; ancestors of groups,
original classes; how sensitive columns of different tables go together; whether a value that the policy names occurs
at all (so it counts as occurring zero times).

A gate on groups that share their labels is covered, too: the release in which they can be told apart satisfies the
lemma, the published one is a function of it, and a belief is then an average of beliefs that satisfy the bound.

**Checked** by `tests/promise/test_fuzzer.py` over whole policies.
"""

from __future__ import annotations

from maskwright.domain.promise import Lemma

GATES = Lemma(
    "gates",
    "a check that follows from what is published changes no belief",
    ("the check is a function of the published tables and of quasi-identifiers",),
    "tests/promise/test_fuzzer.py",
    __name__,
)
