"""Anatomy with random picks: whoever knows the method believes exactly what a bucket shows.

**Lemma (anatomy).** If buckets are filled by taking rows of the currently most frequent values, each row of a value
with equal probability, then the belief that somebody holds a value is exactly its share in the bucket, at most 1/l.

*Proof.* Which values a bucket takes follows from how often each value is left, never from whose they are. Exchange
the values of two rows of a bucket: the exchanged table leads to the same buckets with the same probability, because
every pick was uniform among the rows of its value. So all worlds of a bucket are equally likely. ∎

**Conditions.** Picks are random, not by row order. Inside blocks the lemma holds for each block, if blocks were cut
from quasi-identifiers alone and nothing is published when one of them is not eligible. Groups that a *test of values*
made must not be anatomized: the refused test cuts across the buckets (six rows {p, p, a, b, c, d}, halves of three,
then buckets of two: half of the releases give belief 1).

**Checked** by `tests/methods/test_anatomization_leaks.py`, both ways.
"""

from __future__ import annotations

from maskwright.domain.promise import Lemma

RANDOM_PICKS = Lemma(
    "anatomy",
    "an adversary who knows the method believes exactly what each bucket shows",
    ("rows of a value are picked with equal probability", "blocks follow from quasi-identifiers alone"),
    "tests/methods/test_anatomization_leaks.py::test_without_the_split_test_anatomy_gives_nothing_away",
    __name__,
)
