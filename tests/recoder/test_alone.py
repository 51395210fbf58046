"""New rows that can be told apart from their release are attacked as a release of their own."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd

import maskwright as mw
from maskwright.recoder import Recoder

OLD = pd.DataFrame({"age": [str(20 + i) for i in range(20)], "disease": ["flu", "gout"] * 10})
POLICY = {
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}},
        "disease": "sensitive",
    },
    "require": [{"model": "k-anonymity", "k": 5}],
}


def worst(recoder: Recoder, attack: str) -> Fraction:
    return next(b.worst.after for b in recoder.beliefs_ if b.attack == attack)


def test_new_rows_are_believed_more_than_the_release() -> None:
    recoder = Recoder.from_release(mw.anonymize(OLD, POLICY))
    new = pd.DataFrame({"age": ["22", "23", "35", "36"], "disease": ["flu", "flu", "gout", "flu"]})
    recoder.transform(new)
    # together with the release 12 people each; alone, two in their twenties, both with flu
    assert recoder.report_ is not None
    assert recoder.report_.ok
    assert worst(recoder, "linkage") == Fraction(1, 2)
    assert worst(recoder, "homogeneity") == 1
    recoder.transform(new.iloc[2:])
    assert worst(recoder, "homogeneity") == Fraction(1, 2)


def test_rows_that_are_left_out_are_not_among_them() -> None:
    recoder = Recoder.from_release(mw.anonymize(OLD, POLICY), check="suppress")
    new = pd.DataFrame({"age": ["22", "23", "77"], "disease": ["flu", "gout", "HIV"]})
    assert len(recoder.transform(new)) == 2
    assert worst(recoder, "linkage") == Fraction(1, 2)
    assert worst(recoder, "homogeneity") == Fraction(1, 2)
