"""The examples of docs/hierarchies.md: each table is rebuilt from the policy text above it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from maskwright.hierarchies import WAYS
from maskwright.policy.yaml_text import load_yaml
from tests.hierarchies.test_builders import build, labels, spec

PAGE = Path(__file__).parents[2] / "docs" / "hierarchies.md"
EXAMPLE = re.compile(r"```yaml\n([^`]*)```\n\n((?:\|[^\n]*\n)+)")
EXAMPLES = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


@pytest.mark.parametrize(("policy", "table"), EXAMPLES, ids=[policy.strip()[:40] for policy, _ in EXAMPLES])
def test_an_example_gives_the_table_below_it(policy: str, table: str, tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    before = text[: text.index(f"```yaml\n{policy}")].rsplit("```yaml", 1)[-1]
    for content in re.findall(r"```csv\n([^`]*)```", before):
        (tmp_path / "education.csv").write_text(content, encoding="utf-8")
    order = re.search(r"order: \[([^]]*)\]", before)
    header, _, *rows = table.strip().splitlines()
    expected = [cells(row) for row in rows]
    values = [row[0] for row in expected]
    hierarchy = build(
        load_yaml(policy.encode(), "page"),
        values,
        tmp_path,
        (),
        order.group(1).split(", ") if order else None,
    )
    assert [level.name for level in hierarchy.levels] == cells(header)
    assert [labels(hierarchy, value) for value in hierarchy.values] == expected


def test_every_way_has_an_example() -> None:
    shown = {type(spec(load_yaml(policy.encode(), "page"))) for policy, _ in EXAMPLES}
    assert shown == set(WAYS.values())
