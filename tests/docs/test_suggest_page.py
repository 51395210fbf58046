"""The pages say what the program does."""

from __future__ import annotations

from pathlib import Path

import pytest

from maskwright.suggest import PRESETS
from maskwright.suggest.profile import DOMAIN_LIMIT
from maskwright.suggest.uniqueness import MOST_LEFT_OUT

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_its_line(name: str) -> None:
    preset = PRESETS[name]
    page = (DOCS / "presets.md").read_text(encoding="utf-8")
    assert f"| `{name}` | {preset.description} | {preset.k} |" in page


def test_only_safe_harbor_changes_columns() -> None:
    plain = {preset.adjust for name, preset in PRESETS.items() if name != "hipaa-safe-harbor"}
    assert len(plain) == 1
    assert PRESETS["hipaa-safe-harbor"].adjust not in plain


def test_the_numbers_of_the_page_on_init() -> None:
    page = (DOCS / "init.md").read_text(encoding="utf-8")
    assert f"{DOMAIN_LIMIT:,} values or more" in page
    assert f"(up to {MOST_LEFT_OUT} of them)" in page
