"""The page about your own method: its code runs, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.attacks.minimality import Minimality
from maskwright.errors import UsageError
from maskwright.pipeline.attacking import attack_target
from tests.attacks.test_minimality import model
from tests.attacks.test_replay import KNOWS, publish

PAGE = Path(__file__).parents[2] / "docs" / "attacks" / "your-own-method.md"


def test_the_code_of_the_page_prints_what_it_says() -> None:
    blocks = re.findall(r"```(python)?\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict[str, Any] = {}
    output = ""
    shown = 0
    for language, text in blocks:
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as caught:
                exec(text, names)  # noqa: S102 - our own page
            output = caught.getvalue()
        else:
            assert output == text
            shown += 1
    assert shown == 2


def own(qi: Any, sa: Any, rng: Any) -> list[list[int]]:
    """By the first letter, unless one of the groups shows p only: then all together."""
    groups: dict[str, list[int]] = {}
    for i, row in enumerate(qi):
        groups.setdefault(row[0], []).append(i)
    if any(all(sa[i] == "p" for i in rows) for rows in groups.values()):
        return [list(range(len(qi)))]
    return list(groups.values())


def test_a_release_attacked_as_if_my_function_had_made_it() -> None:
    rows = [("1", "x", "p"), ("1", "x", "p"), ("2", "x", "q"), ("2", "y", "q"), ("2", "y", "p")]
    models = [model("k-anonymity", k=5), model("simple-l-diversity", l="5/3")]
    target = publish(rows, "optimal-lattice", models)
    assert len(target.grouping.classes.sizes) == 1
    found = attack_target(target, [Minimality(method=own)], KNOWS)[0]
    # 10 deals of three p to five people: both of a = 1 have p in 3, all three of a = 2 in 1
    assert found.kind == "exact"
    assert str(found.worst.after) == "3/4"
    assert "a 1" in found.worst.whom
    assert found.measures["looked at"]["runs of the method"] == 11
    with pytest.raises(UsageError, match="does not make the groups"):
        Minimality(method=lambda qi, sa, rng: [[i] for i in range(len(qi))]).run(target, KNOWS)


def test_the_public_names() -> None:
    assert mw.attacks.possible_worlds.__name__ == "possible_worlds"
    assert mw.attacks.Minimality is Minimality
    assert Minimality(method=own).options() == {}
