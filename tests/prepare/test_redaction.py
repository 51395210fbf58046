"""Free text is redacted by a pipeline that the user installs, and what comes out is never called verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.errors import InputError, MaskwrightError, PolicyError, UsageError
from maskwright.prepare.redaction import text_redactor, without_spans

NOTE = "Seen by Anna Meyer in Dresden, call +49 351 1234567 or write to anna@example.org about the dressing"


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A pipeline of a language that knows a few names, saved as spaCy's own are."""
    import spacy

    made = spacy.blank("en")
    ruler: Any = made.add_pipe("entity_ruler")
    ruler.add_patterns(
        [{"label": "PERSON", "pattern": name} for name in ("Anna Meyer", "Tom Stone")]
        + [{"label": "GPE", "pattern": "Dresden"}, {"label": "CARDINAL", "pattern": "three"}]
    )
    folder = tmp_path_factory.mktemp("models") / "names"
    made.to_disk(folder)
    return str(folder)


def table_of(notes: list[str | None]) -> tuple[pd.DataFrame, dict[str, Any]]:
    frame = pd.DataFrame({"sex": ["f", "m"] * (len(notes) // 2), "note": notes})
    policy: dict[str, Any] = {
        "columns": {"sex": "quasi-identifier",
                    "note": {"role": "insensitive", "near_unique": "allow", "direct_identifiers": "allow"}},
        "require": [{"model": "k-anonymity", "k": 2}],
    }  # fmt: skip
    return frame, policy


def test_names_and_numbers_are_taken_out(pipeline: str) -> None:
    redacted = text_redactor(pipeline)
    assert redacted(NOTE) == "Seen by [PERSON] in [GPE], call [PHONE] or write to [EMAIL] about the dressing"
    assert redacted("three days of fever") == "[CARDINAL] days of fever"
    assert text_redactor(pipeline, ("CARDINAL",))("three days of fever") == "three days of fever"


def test_spans_that_overlap_are_one() -> None:
    assert without_spans("abcdefgh", [(2, 5, "x"), (1, 4, "y"), (6, 8, "z")]) == "a[Y]f[Z]"
    assert without_spans("abc", []) == "abc"
    assert without_spans("abc", [(0, 3, "a"), (0, 1, "b")]) == "[A]"


def test_a_release_holds_what_is_left_and_says_that_it_is_not_verified(
    tmp_path: Path, pipeline: str, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = [NOTE, "Tom Stone feels better", None, "no complaints"] * 5
    frame, policy = table_of(notes)
    frame.to_csv(tmp_path / "notes.csv", index=False)
    release = mw.anonymize(
        tmp_path / "notes.csv", policy | {"prepare": {"note": {"redact": {"model": pipeline}}}}
    )
    release.save(tmp_path / "release")
    assert sorted({row[1] for row in release.table.fetchall()} - {None}) == [
        "Seen by [PERSON] in [GPE], call [PHONE] or write to [EMAIL] about the dressing",
        "[PERSON] feels better", "no complaints",
    ]  # fmt: skip
    public = b"".join(p.read_bytes() for p in (tmp_path / "release" / "public").rglob("*") if p.is_file())
    for secret in (b"Meyer", b"Stone", b"1234567", b"example.org"):
        assert secret not in public
    assert b"not verified" in public
    [repair] = [r for r in release.repairs if r.column == "note"]
    assert (repair.rows, repair.values) == (10, 2)
    assert "not verified" in repair.text


def test_nothing_is_promised_of_it(pipeline: str) -> None:
    frame, policy = table_of(["no complaints", "still no complaints"] * 4)
    policy["columns"] = {
        "sex": "quasi-identifier",
        "note": {"role": "sensitive", "direct_identifiers": "allow"},
    }
    policy["prepare"] = {"note": {"redact": {"model": pipeline}}}
    policy["require"] += [{"model": "belief", "max": "1", "attribute": "note"}]
    release = mw.anonymize(frame, policy)
    [promise] = [p for p in release.promises if p.attribute == "note"]
    assert promise.status == "measured"
    assert "prepare.note.redact" in {i.setting for i in promise.uncovered}


def test_it_is_still_free_text(pipeline: str) -> None:
    frame, policy = table_of([f"{NOTE}, visit {i}, and he will come again in a week" for i in range(20)])
    policy["columns"]["note"].pop("direct_identifiers")
    policy["prepare"] = {"note": {"redact": {"model": pipeline}}}
    with pytest.raises(InputError, match=r"'note'.*look like free text"):
        mw.anonymize(frame, policy)


@pytest.mark.parametrize(
    ("redact", "problem", "message"),
    [
        ({"model": "no_such_model"}, UsageError, "no installed spaCy pipeline; install it"),
        ({"model": "relative/folder"}, UsageError, "the whole path"),
        ({}, PolicyError, "model"),
        (
            {"model": "M", "keep": ["CARDINALS"]},
            InputError,
            "has no label 'CARDINALS'; it has CARDINAL, GPE, PERSON",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    pipeline: str, redact: dict[str, Any], problem: type[MaskwrightError], message: str
) -> None:
    frame, policy = table_of(["a", "b"] * 4)
    if redact.get("model") == "M":
        redact = redact | {"model": pipeline}
    with pytest.raises(problem, match=message):
        mw.anonymize(frame, policy | {"prepare": {"note": {"redact": redact}}})


def test_a_pipeline_without_names_is_refused(tmp_path: Path) -> None:
    import spacy

    spacy.blank("en").to_disk(tmp_path / "empty")
    with pytest.raises(InputError, match="recognises no names"):
        text_redactor(str(tmp_path / "empty"))


def test_a_text_that_the_model_fails_on_is_not_published(
    pipeline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spacy.language import Language

    call = Language.__call__

    def failing(self: Language, text: Any, *args: Any, **more: Any) -> Any:
        if "secret" in str(text):
            raise ValueError(text)
        return call(self, text, *args, **more)

    monkeypatch.setattr(Language, "__call__", failing)
    frame, policy = table_of(["fine", "the secret of Tom Stone"] * 4)
    policy["prepare"] = {"note": {"redact": {"model": pipeline}}}
    text_redactor.cache_clear()
    with pytest.raises(InputError, match=r"4 rows.* do not fit prepare\.note\.redact") as refused:
        mw.anonymize(frame, policy)
    assert "Stone" not in str(refused.value)
    text_redactor.cache_clear()
