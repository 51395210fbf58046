"""The page of errata runs, and prints what it says."""

from pathlib import Path

import pytest

from tests.pages import printed

PAGE = Path(__file__).parents[2] / "docs" / "errata.md"


@pytest.fixture(scope="module")
def blocks() -> list[tuple[str, str, str | None]]:
    return printed(PAGE)


def test_every_block_prints_what_the_page_says(blocks: list[tuple[str, str, str | None]]) -> None:
    for code, output, said in blocks:
        assert output == (said or ""), code
    assert sum(bool(output) for _, output, _ in blocks) >= 20


def test_every_erratum_is_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for letter, last in (("W", 6), ("C", 16), ("T", 6), ("D", 5), ("M", 6)):
        for number in range(1, last + 1):
            assert f"{letter}-{number}" in text
