"""Several rows per person: a belief about a person is about some row of the person.

**Lemma U.** If the belief that a row holds a value is at most b for each row, then a person with r rows is believed
to hold the value in *some* row with at most r·b.

*Proof.* The probability of a union is at most the sum of the probabilities. ∎

**Lemma U, exactly.** If the groups follow from quasi-identifiers alone, then somebody with r of the N rows of a
class, c of which hold the value, holds it in some row with 1 − C(N−c, r)/C(N, r); with rows in several classes the
chances of holding it in none multiply.

*Proof.* By the lemma of `blind.py` every assignment of a class's values to its rows is equally likely, independently
of other classes. The person's r rows are a given set of r rows: of the C(N, c) places for the value, C(N−r, c) avoid
them, and C(N−r, c)/C(N, c) = C(N−c, r)/C(N, r). ∎

Rows of the person that are not published would have to be counted, too: each holds the value with the prior. So the
lemma is about people all of whose rows are published, and about those of whom none is (`dropping.py`).

Which rows of a class are whose is not published; how many are, everybody knows, from quasi-identifiers. So a
requirement that counts *people* with a value does not follow from what is published (see `gates.py`).

**Checked** by `tests/attacks/test_several_rows.py`, which lists every assignment of values to rows.
"""

from __future__ import annotations

from maskwright.domain.promise import Lemma

SEVERAL_ROWS = Lemma(
    "U",
    "somebody with r of the N rows of a class, c of which hold a value, has it with 1 − C(N−c, r)/C(N, r)",
    (
        "groups follow from quasi-identifiers alone",
        "no requirement on sensitive values counts people",
        "nobody is published with some rows and left out with others",
    ),
    "tests/attacks/test_several_rows.py::test_against_every_assignment",
    __name__,
)
