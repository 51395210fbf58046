"""Pseudonyms: as the page defines them, the same from the plain function and from an engine, others for each key."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.identifiers.pseudonyms import Pseudonyms

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)


@given(st.binary(max_size=100), TEXTS, TEXTS, TEXTS)
def test_a_pseudonym_is_80_bits_of_the_standard_hash(key: bytes, domain: str, group: str, value: str) -> None:
    parts = [len(text.encode()).to_bytes(8, "big") + text.encode() for text in (domain, group)]
    whole = hmac.new(key, b"".join(parts) + value.encode(), hashlib.sha256).digest()
    assert Pseudonyms(key, domain, group).token(value) == base64.b32encode(whole).decode()[:16]


@settings(max_examples=10, deadline=None)
@given(st.binary(min_size=1, max_size=80), st.lists(TEXTS, min_size=1, max_size=20))
def test_an_engine_gives_the_same(key: bytes, values: list[str]) -> None:
    pseudonyms = Pseudonyms(key, "release", "patient_id")
    frame = pd.DataFrame({"patient_id": values, "n": range(len(values))})
    engine = open_engine()
    try:
        table = engine.open(frame, Reading())
        told = engine.sample(table, len(values), ["patient_id", "n"])
        made = engine.sample(
            engine.pseudonymise(table, {"patient_id": pseudonyms}), len(values), ["patient_id", "n"]
        )
    finally:
        engine.close()
    by_number = {row["n"]: row["patient_id"] for row in made}
    assert by_number == {
        r["n"]: None if (v := r["patient_id"]) is None else pseudonyms.token(v) for r in told
    }


def test_numbers_have_the_pseudonym_of_their_text() -> None:
    pseudonyms = Pseudonyms(b"key", "release", "id")
    engine = open_engine()
    try:
        tables = [
            engine.open(pd.DataFrame({"id": ids}), Reading()) for ids in ([7, 8], [7.0, 8.0], [" 7", "8 "])
        ]
        shown = [engine.sample(engine.pseudonymise(t, {"id": pseudonyms}), 2, ["id"]) for t in tables]
    finally:
        engine.close()
    assert [sorted(str(row["id"]) for row in rows) for rows in shown] == [
        sorted(map(pseudonyms.token, "78"))
    ] * 3


def test_key_domain_and_group_tell_pseudonyms_apart() -> None:
    made = {
        Pseudonyms(*given).token("Ann")
        for given in [
            (b"k", "ab", "c"),
            (b"l", "ab", "c"),
            (b"k", "a", "bc"),
            (b"k", "abc", ""),
            (b"k", "ab", "d"),
        ]
    }
    assert len(made) == 5
