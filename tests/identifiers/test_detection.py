"""Direct identifiers are found by content: precision and recall on a corpus, nothing in the real tables."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.errors import InputError
from maskwright.identifiers.detection import (
    KINDS,
    _has_checksum,
    _stdnum,
    detect_identifier,
    detect_inside,
)
from tests.amounts import amount
from tests.identifiers.corpus import DECOYS, IDENTIFIERS, corpus_columns
from tests.support import ADULT, FARS

LEAST = 0.95


def test_precision_and_recall_of_every_kind() -> None:
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    columns = decoys = 0
    for seed in range(amount(2, 40)):
        for column in corpus_columns(seed):
            columns, decoys = columns + 1, decoys + (column.kind is None)
            found = detect_identifier(column.values)
            key = found.kind.key if found else None
            if key == column.kind:
                right[key or ""] += 1
                continue
            wrong[key or ""] += 1
            missed[column.kind or ""] += 1
    assert columns >= 200
    assert decoys >= 100
    assert len(KINDS) >= 20
    for key in KINDS:
        assert right[key] >= LEAST * (right[key] + wrong[key]) > 0, f"{key}: precision"
        assert right[key] >= LEAST * (right[key] + missed[key]), f"{key}: recall"


def test_the_corpus_has_every_kind_and_the_decoys_that_matter() -> None:
    assert {kind for kind, _, _ in IDENTIFIERS} == set(KINDS)
    names = {name for name, _ in DECOYS}
    assert {"order numbers", "product codes", "times", "SHA-256", "EAN", "counties"} <= names


def test_no_false_alarm_on_the_real_tables() -> None:
    engine = open_engine()
    try:
        for path in (ADULT / "adult.csv", FARS / "fars.parquet"):
            table = engine.open(path, Reading())
            names = [c.name for c in table.columns]
            for name, domain in zip(names, engine.domains(table, names, limit=5000), strict=True):
                assert detect_identifier(domain.values) is None, (path.name, name)
                assert detect_inside(domain.values) is None, (path.name, name)
    finally:
        engine.close()


def test_a_format_without_a_checksum_does_not_count() -> None:
    dates = [
        f"{day:02}{month:02}70{serial:04}"
        for day in range(1, 28)
        for month in (1, 7)
        for serial in (17, 4711)
    ]
    assert all(map(_stdnum("dk.cpr"), dates))  # Danish numbers, of which any serial is one
    assert not _has_checksum(_stdnum("dk.cpr"), dates)
    assert detect_identifier(dates) is None
    cards = ["4111111111111111", "4012888888881881", "5555555555554444"]
    assert _has_checksum(_stdnum("luhn"), cards)


def test_leading_zeros_that_a_spreadsheet_took() -> None:
    whole = []
    for body in range(1_000_000, 30_000_000, 390_000):
        check = sum(w * int(c) for w, c in zip(range(9, 1, -1), f"{body:08}", strict=True)) % 11
        whole += [f"{body:08}{check}"] if check < 10 else []
    stripped = [str(int(number)) for number in whole]
    assert {len(number) for number in stripped} == {8, 9}
    for values in (whole, stripped):
        found = detect_identifier(values)
        assert found is not None
        assert found.format == "nl.bsn"


def test_identifiers_inside_other_texts() -> None:
    rest = ["improved", "unchanged", "see letter"] * 9
    for text, kind in (
        ("write to anna.meyer@example.org", "email"),
        ("call +49 351 1234567 at night", "phone"),
        ("his number is 123-45-6789, he says", "social-security"),
        ("pay to DE89370400440532013000", "bank-account"),
    ):
        assert detect_identifier([*rest, text]) is None
        found = detect_inside([*rest, text])
        assert found is not None
        assert (found.kind.key, found.passing, found.inside) == (kind, 1, True)
        assert "example" not in found.sentence()
    assert detect_inside([*rest, "pay to DE00370400440532013000", "12345-67-8901", "a@b", "+4 of 5"]) is None


def _people(**column: list[str]) -> tuple[pd.DataFrame, dict[str, Any]]:
    rows = len(next(iter(column.values())))
    frame = pd.DataFrame({"sex": ["f", "m"] * (rows // 2), **column})
    policy: dict[str, Any] = {
        "columns": {"sex": "quasi-identifier"}, "require": [{"model": "k-anonymity", "k": 2}],
    }  # fmt: skip
    return frame, policy


NAMES = [
    f"{given} {family}"
    for given in ("Anna", "Peter", "Maria", "Thomas")
    for family in ("Meyer", "Stone", "Rossi")
]


@pytest.mark.parametrize(
    "role", [{"role": "insensitive", "near_unique": "allow"}, {"role": "sensitive"}, {"role": "quasi-identifier"}]
)  # fmt: skip
def test_names_are_refused_whatever_their_column_is(role: dict[str, str]) -> None:
    frame, policy = _people(notes=NAMES * 2)
    policy["columns"]["notes"] = role | (
        {"hierarchy": {"groups": [NAMES]}} if "quasi" in role["role"] else {}
    )
    with pytest.raises(InputError) as refused:
        mw.anonymize(frame, policy)
    told = str(refused.value)
    assert "'notes'" in told
    assert "names of people" in told
    assert not any(name in told for name in NAMES)
    policy["columns"]["notes"]["direct_identifiers"] = "allow"  # the remedies work
    assert len(mw.anonymize(frame, policy).table) == len(frame)
    policy["columns"]["notes"] = "identifier"
    policy["unit"] = "none"
    assert list(mw.anonymize(frame, policy).table.columns) == ["sex"]


def test_an_address_in_one_note_is_refused() -> None:
    frame, policy = _people(notes=["better", "worse", "same"] * 4)
    policy["columns"]["notes"] = "sensitive"
    assert len(mw.anonymize(frame, policy).table) == 12
    frame.loc[3, "notes"] = "mail anna@example.org"
    with pytest.raises(InputError, match=r"1 of 4 values looked at hold e-mail addresses"):
        mw.anonymize(frame, policy)


def test_names_inside_notes_that_repeat_are_refused() -> None:
    """Sentences that repeat are the labels of a category, unless somebody is named in them."""
    notes = [
        f"admitted at night and seen by {'Dr. ' if i % 2 else ''}{name} in ward {i}"
        for i, name in enumerate(NAMES)
    ]
    frame, policy = _people(notes=notes * 4)
    policy["columns"]["notes"] = "sensitive"
    with pytest.raises(
        InputError, match=r"'notes'.*12 of 12 values looked at hold names of people"
    ) as refused:
        mw.anonymize(frame, policy)
    assert not any(name in str(refused.value) for name in NAMES)
    titled = ["the patient was taken over from Frau Meyer, who is on leave"] * 3
    found = detect_inside(
        [*titled, *(f"discharged after {i} days to a home in New York City" for i in range(40))]
    )
    assert found is not None
    assert (found.kind.key, found.passing) == ("person-name", 3)
    labels = [
        f"{disease} of the {part}, treated in May or June at San Francisco General"
        for disease in ("Hodgkin lymphoma", "Crohn disease", "Diseases", "Injury") for part in ("neck", "heart", "skin")
    ]  # fmt: skip
    frame, policy = _people(notes=labels * 4)
    policy["columns"]["notes"] = "sensitive"
    assert len(mw.anonymize(frame, policy).table) == 48


def test_elements_of_sets_are_looked_at() -> None:
    frame, policy = _people(seen=[f"{a};{b}" for a, b in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True)])
    policy["columns"]["seen"] = {"role": "sensitive", "multivalued": ";"}
    with pytest.raises(InputError, match="names of people"):
        mw.anonymize(frame, policy)


def test_what_is_allowed_is_not_promised() -> None:
    from maskwright.policy.binding import unproven_settings
    from maskwright.policy.policy import Policy

    _, policy = _people(notes=NAMES)
    policy["columns"]["notes"] = {"role": "sensitive", "direct_identifiers": "allow"}
    assert unproven_settings(Policy.load(policy)) == ("columns.notes.direct_identifiers",)


@pytest.mark.parametrize("sign", ["\n", "２", "²", "\u200b"])
def test_texts_that_no_library_expects_are_no_numbers(sign: str) -> None:
    """The checks of some formats raise errors of their own on them (pt.cc, cl.rut, fr.nir, at.vnr, cn.ric)."""
    drawn = random.Random(0)  # noqa: S311
    for length in (9, 10, 12, 13, 15, 18):
        for place in range(0, length, 3):
            numbers = ["".join(drawn.choices("0123456789", k=length)) for _ in range(20)]
            assert detect_identifier([n[:place] + sign + n[place + 1 :] for n in numbers]) is None
