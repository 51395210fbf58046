"""Moved dates: intervals stay, offsets are uniform, and what known events tell is what trying every offset tells."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.errors import InputError, PolicyError, UsageError
from maskwright.identifiers.date_shifts import (
    DateOffsets,
    DateShiftRisk,
    ShiftedEvents,
    known_events,
    offsets_left,
)
from maskwright.identifiers.pseudonyms import Pseudonyms
from maskwright.kernels.randomness import keyed_digest, secret_key
from maskwright.recoder import Recoder
from maskwright.verification.verify import verify_folder

DRAW = Pseudonyms(b"a key", "date shift", "people")


def stays(n: int = 60, seed: int = 0) -> pd.DataFrame:
    """Stays of people, one row each."""
    rng = np.random.default_rng(seed)
    came = np.datetime64("2024-01-01") + rng.integers(0, 365, n).astype("timedelta64[D]")
    return pd.DataFrame(
        {
            "who": [f"p{i}" for i in range(n)],
            "ward": rng.choice(list("AB"), n),
            "came": came.astype(str),
            "left": (came + rng.integers(0, 20, n).astype("timedelta64[D]")).astype(str),
            "ill": rng.choice(["flu", "cold"], n),
        }
    )


def policy(shift: Any = None, **more: Any) -> dict[str, Any]:
    passing = {"role": "insensitive", "near_unique": "allow"}
    columns = {"who": "identifier", "ward": "quasi-identifier", "came": passing, "left": passing}
    return {
        "columns": columns | {"ill": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 2}],
        "shift_dates": {"columns": ["came", "left"], "within": 30, "person": "who"} | (shift or {}),
        **more,
    }  # fmt: skip


# --- offsets --------------------------------------------------------------------------------------------------


@given(
    st.binary(min_size=1, max_size=40),
    st.text(st.characters(codec="utf-8")),
    st.integers(7, 400),
    st.booleans(),
)
def test_an_offset_is_never_zero_and_within_its_bounds(
    key: bytes, who: str, within: int, weekdays: bool
) -> None:
    """As the page defines it, from the standard hash."""
    offsets = DateOffsets(Pseudonyms(key, "a", "b"), within, weekdays)
    message = b"".join(len(p).to_bytes(8, "big") + p for p in (b"a", b"b")) + who.encode()
    h = int(hmac.new(key, message, hashlib.sha256).hexdigest()[:15], 16)
    n = within // 7 if weekdays else within
    every = [o for o in range(-n, n + 1) if o]
    assert offsets.days(who) == every[h % (2 * n)] * (7 if weekdays else 1)


@pytest.mark.parametrize("weekdays", [False, True])
def test_offsets_are_uniform(weekdays: bool) -> None:
    """Chi-square over 20,000 people, with a fixed key; each offset occurs."""
    from scipy import stats

    offsets = DateOffsets(DRAW, 70, weekdays)
    counts = Counter(offsets.days(f"person {i}") for i in range(20_000))
    step = 7 if weekdays else 1
    assert set(counts) == {o for o in range(-70, 71, step) if o}
    assert stats.chisquare(list(counts.values())).pvalue > 0.001


@pytest.mark.parametrize("weekdays", [False, True])
def test_an_engine_moves_them_alike(weekdays: bool) -> None:
    offsets = DateOffsets(DRAW, 45, weekdays)
    frame = stays()
    frame.loc[3, "left"] = None
    engine = open_engine()
    try:
        for given_ in (frame, frame.assign(came=pd.to_datetime(frame["came"]).dt.date)):
            moved = engine.shift_dates(engine.open(given_, Reading()), ["came", "left"], "who", offsets)
            told = engine.sample(moved, len(frame))
            assert len(told) == len(frame)
            by = frame.set_index("who")
            for row in told:
                for column in ("came", "left"):
                    before = by.loc[row["who"], column]
                    days = np.timedelta64(offsets.days(row["who"]), "D")
                    expected = (
                        None if before is None or before != before else str(np.datetime64(before) + days)
                    )
                    assert row[column] == expected
    finally:
        engine.close()


# --- the attack -----------------------------------------------------------------------------------------------


def by_trying(rows: list[tuple[int, int, int, int]], events: int, offsets: list[int]) -> tuple[int, int, int]:
    """(Fewest, found, people), from every set of known events, everybody and every offset.

    The rows are who, kind, shown and true day.
    """
    shown: dict[int, set[tuple[int, int]]] = {}
    true: dict[int, set[tuple[int, int]]] = {}
    for who, kind, day, was in rows:
        shown.setdefault(who, set()).add((kind, day))
        true.setdefault(who, set()).add((kind, was))
    counts: dict[int, list[int]] = {}
    for who, mine in true.items():
        for known in combinations(sorted(mine), events):
            fits = sum(
                any(all((kind, was + o) in theirs for kind, was in known) for o in offsets)
                for theirs in shown.values()
            )
            counts.setdefault(who, []).append(fits)
    every = [n for found in counts.values() for n in found]
    return min(every, default=0), sum(1 in found for found in counts.values()), len(counts)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_known_events_against_trying_everything(data: st.DataObject) -> None:
    steps, step = data.draw(st.integers(1, 4)), data.draw(st.sampled_from([1, 7]))
    every = [o * step for o in range(-steps, steps + 1) if o]
    people = data.draw(st.integers(1, 7))
    rows = []
    for who in range(people):
        moved = data.draw(st.sampled_from(every))
        for _ in range(data.draw(st.integers(1, 4))):
            was = data.draw(st.integers(100, 100 + 4 * step))
            rows.append((who, data.draw(st.integers(0, 1)), was + moved, was))
    who, kind, shown, true = (np.array(x, dtype=np.int64) for x in zip(*rows, strict=True))
    events = ShiftedEvents(who, kind, kind % 2, shown, true)
    for known in known_events(events, steps, step):
        assert (known.fewest, known.found, known.people) == by_trying(rows, known.events, every)
    span = {c: (true[kind % 2 == c].min(), true[kind % 2 == c].max()) for c in set((kind % 2).tolist())}
    left = offsets_left(events, steps, step)
    for p in range(people):
        mine = [(k % 2, s) for w, k, s, _ in rows if w == p]
        assert left[p] == sum(all(span[c][0] <= s - o <= span[c][1] for c, s in mine) for o in every)


def test_what_known_events_tell_by_hand() -> None:
    """Two people of one class, moved by +1 and −1 of at most 1: who was there on day 10 may be either."""
    events = ShiftedEvents(
        *(np.array(x, dtype=np.int64) for x in ([0, 1], [0, 0], [0, 0], [11, 9], [10, 10]))
    )
    [one, two] = known_events(events, 1, 1)
    assert (one.fewest, one.found, one.people) == (2, 0, 2) and two.people == 0
    assert offsets_left(events, 1, 1).tolist() == [1, 1]  # only day 10 was collected
    apart = ShiftedEvents(
        *(np.array(x, dtype=np.int64) for x in ([0, 1], [0, 0], [0, 0], [11, 13], [10, 12]))
    )
    assert known_events(apart, 1, 1)[0].fewest == 1 and known_events(apart, 1, 1)[0].found == 1


# --- releases -------------------------------------------------------------------------------------------------


def events_of(table: pd.DataFrame, offsets: DateOffsets) -> list[tuple[int, int, int, int]]:
    """The published events with their true days; `table` also shows whose they are."""
    found = []
    for number, (_, row) in enumerate(table.iterrows()):
        for i, column in enumerate(("came", "left")):
            shown = np.datetime64(row[column]).astype(int)
            kind = 2 * ["A", "B"].index(row["ward"]) + i
            found.append((number, kind, int(shown), int(shown) - offsets.days(row["who"])))
    return found


@pytest.mark.parametrize(("method", "weekdays"), [("optimal-lattice", False), ("local-recoding", True)])
def test_intervals_stay_and_the_attack_is_told(method: str, weekdays: bool) -> None:
    frame = stays()
    shift = {"weekdays": weekdays}
    columns = policy()["columns"] | {"ward": {"role": "quasi-identifier", "levels": [0]}}
    release = mw.anonymize(frame, policy(shift, method=method, columns=columns), seed=1)
    table = release.table
    gaps = [Counter((pd.to_datetime(t["left"]) - pd.to_datetime(t["came"])).dt.days) for t in (frame, table)]
    assert gaps[0] == gaps[1] and "who" not in table
    if weekdays:
        days = [Counter(np.array(t["came"], dtype="datetime64[D]").astype(int) % 7) for t in (frame, table)]
        assert days[0] == days[1]
    assert {p.status for p in release.promises} == {"measured"}
    assert isinstance(release.date_shift, DateShiftRisk)
    offsets = DateOffsets(
        Pseudonyms(keyed_digest(secret_key(1), "maskwright date shift 1"), "date shift", "people"),
        30,
        weekdays,
    )
    days = np.array([offsets.days(who) for who in frame["who"]], dtype="timedelta64[D]")
    moved = frame.assign(
        **{
            name: (frame[name].to_numpy(dtype="datetime64[D]") + days).astype(str)
            for name in ("came", "left")
        }
    )
    assert Counter(zip(moved["ward"], moved["came"], moved["left"], strict=True)) == Counter(
        zip(table["ward"], table["came"], table["left"], strict=True)
    )
    every = [o for o in (range(-28, 29, 7) if weekdays else range(-30, 31)) if o]
    for known in release.date_shift.known:
        told = by_trying(events_of(moved, offsets), known.events, every)
        assert (known.fewest, known.found, known.people) == told
    assert any("found" in note and "moved dates" in note for note in release.notes)


def test_visits_of_a_person_move_alike_in_every_release() -> None:
    frame = pd.concat([stays(), stays(seed=5)]).reset_index(drop=True)
    shift = {"columns": ["came", "left"], "within": 30}
    columns = policy()["columns"]
    tables = []
    unit = {"column": "who", "publish": "pseudonym"}
    for k in (2, 3):
        made = policy(unit=unit, columns=columns, require=[{"model": "k-anonymity", "k": k}])
        release = mw.anonymize(frame, made | {"shift_dates": shift})
        tables.append(release.table)
        assert release.date_shift is not None and release.date_shift.linked
    spans = [
        Counter(
            int((pd.to_datetime(v).max() - pd.to_datetime(v).min()).days) for _, v in t.groupby("who")["came"]
        )
        for t in (frame, *tables)
    ]
    assert spans[0] == spans[1] == spans[2]
    assert sorted(tables[0]["came"]) == sorted(tables[1]["came"])  # no second offset to compare with


def test_readers_are_told_and_the_key_is_nowhere(tmp_path: Path) -> None:
    mw.anonymize(stays(), policy(), tmp_path / "r")
    card = (tmp_path / "r" / "public" / "data-card.html").read_text(encoding="utf-8")
    assert "at most 30 days forwards or backwards" in card
    record = json.loads((tmp_path / "r" / "private" / "manifest.json").read_text())
    assert record["date_shift"]["offsets"] == 60 and len(record["date_shift"]["known_events"]) == 2
    assert verify_folder(tmp_path / "r").ok
    with pytest.raises(UsageError, match="moved dates"):
        Recoder(tmp_path / "r").transform(stays())


@pytest.mark.parametrize(
    ("shift", "more", "message"),
    [
        ({"person": None}, {}, "name the column that tells persons apart"),
        ({"person": "ward"}, {}, "its role must be identifier"),
        ({"columns": ["ward"]}, {}, "'ward' is quasi-identifier"),
        ({"columns": ["nothing"]}, {}, "'nothing' is not published"),
        ({"within": 3, "weekdays": True}, {}, "within: 7 or more"),
        ({"within": 0}, {}, "within"),
        ({}, {"recoding": "permute"}, "recoding: generalise only"),
    ],
)
def test_what_cannot_be_is_refused(shift: dict[str, Any], more: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        mw.Policy.load(policy(shift, **more))


def test_what_is_no_day_is_refused_by_count() -> None:
    frame = stays()
    frame.loc[[2, 4], "came"] = ["5.3.2024", "2024-13-01"]
    with pytest.raises(InputError, match="2 values of column 'came' are not days") as told:
        mw.anonymize(frame, policy())
    assert "5.3.2024" not in str(told.value)
    frame = stays()
    frame.loc[7, "who"] = None
    with pytest.raises(InputError, match="1 dates of column 'came' belong to nobody"):
        mw.anonymize(frame, policy())
    with pytest.raises(PolicyError, match="makes several tables"):
        mw.anonymize(stays(), policy(method="codip"))
