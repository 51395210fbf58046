"""Rows that are left out: by the size of their class, or at random, never because of a value.

**Lemma (dropping).** If who is left out follows from quasi-identifiers and from random draws that look at no value,
then somebody who is left out keeps the prior of the whole table, and the beliefs about those who are published are
those of a table that never held the others.

*Proof.* Values are dealt to the rows of the table independently of quasi-identifiers and of the draws (random
worlds). Given who is left out, the values of those who remain are dealt as in a table of their own, and no later step
sees any other value. ∎

**Conditions.** The sizes that decide are known to everybody: classes of people, with their quasi-identifiers. Later
steps see nothing of those who are left out: references, domains and the text of labels are taken from those who
remain. Leaving rows out because a value is *missing* is leaving them out because of a value, unless nobody is.

**Checked** by `tests/promise/test_fuzzer.py` over whole policies, people who are left out included.
"""

from __future__ import annotations

from maskwright.domain.promise import Lemma

DROPPING = Lemma(
    "dropping",
    "somebody who is left out by class size or at random keeps the prior of the whole table",
    ("who is left out follows from quasi-identifiers and chance", "no later step sees their values"),
    "tests/promise/test_fuzzer.py",
    __name__,
)
