"""Methods that do not look at values: whoever knows the method believes exactly what the published group shows.

**Lemma (blind).** If the groups of a release, and who is left out, follow from quasi-identifiers and from random
draws that look at no value, then the belief that somebody holds a value is exactly its share in the published group.

*Proof.* A world deals the values of each published group anew to its rows. In each of them the method has the same
quasi-identifiers and makes the same groups with the same probability, so that every world is as likely as any other
after the release as before it. Rows of a group are exchangeable. ∎

Knowing facts as well changes nothing about that: the worlds in which the facts are true remain equally likely, so
that whatever an attack counts over the worlds of the published groups is right for somebody who knows the method,
too.

**Conditions.** No model that the method searches on looks at sensitive values; no row is dropped because of them.
Groups may be divided further into buckets of different values (anatomized): that is the lemma of `anatomy.py`, for
groups that were fixed beforehand.

**Checked** by `tests/promise/test_fuzzer.py` over whole policies.
"""

from __future__ import annotations

from maskwright.domain.promise import Lemma

BLIND = Lemma(
    "blind",
    "an adversary who knows the method believes exactly what each published group shows",
    ("no searched model looks at sensitive values", "nobody is dropped because of values"),
    "tests/promise/test_fuzzer.py",
    __name__,
)
