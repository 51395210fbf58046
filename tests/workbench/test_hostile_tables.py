"""A table whose columns and values are markup, through every page of a project: nothing becomes part of a page."""

from __future__ import annotations

import csv
import re
from html.parser import HTMLParser

from maskwright.policy.policy import Policy
from tests.workbench.conftest import Bench

MARKS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "{{700*7}}",
    "`a` *b*<x-y>",
]
NAMES = [*MARKS[:4], "disease`<x-y>`"]
PAGES = ["table", "advice", "columns", "requirements", "method", "run", "explore", "policy"]
REQUIRE = {"model": "simple-l-diversity", "l": "3", "attribute": NAMES[4], "use": "gate"}


class Elements(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def check(text: str) -> None:
    for tag, attributes in Elements(text).tags:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert tag not in ("img", "x-y", "iframe"), (tag, attributes)
        if tag == "script":
            source = attributes.get("src") or ""
            assert source.startswith("/static/") or attributes.get("type") == "application/json", attributes
        for name in ("href", "src"):
            assert not re.match(r"\s*(javascript|data|https?):|//", attributes.get(name) or ""), attributes
    assert "4900" not in text, "a template in a value was run"


def hostile_table(bench: Bench) -> str:
    path = bench.tables / "hostile.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        writer.writerows([*(MARKS[i // 2**j % 5] for j in range(4)), MARKS[i % 3]] for i in range(60))
    return path.name


def test_markup_stays_text_on_every_page(bench: Bench) -> None:
    project = bench.opened(hostile_table(bench))
    answers = {"recipient": "researchers", "knows": "method", "needs": "same-labels"}
    started = bench.client.post(f"/api/projects/{project}/profile", json=answers).json()
    assert bench.wait(project, started["id"])["state"] == "done"
    columns = dict.fromkeys(NAMES[:4], "quasi-identifier") | {NAMES[4]: "sensitive"}
    shown = ""
    for keep, state in (({NAMES[0]: "exact", NAMES[3]: "exact"}, "failed"), ({}, "done")):
        policy = {
            "unit": "none", "columns": columns, "keep": keep,
            "require": [{"model": "k-anonymity", "k": "5"}, REQUIRE],
            "method": {"name": "optimal-lattice", "suppression": "0"},
        }  # fmt: skip
        text = Policy.of(policy, "policy").to_yaml()
        assert bench.client.put(f"/api/projects/{project}/policy", json={"text": text}).is_success
        job = bench.run(project)
        assert job["state"] == state
        last = [f"releases/{job['id']}"] if state == "done" else []
        for page in [*PAGES, *(f"columns/{i}" for i in range(5)), *last]:
            answer = bench.client.get(f"/p/{project}/{page}")
            assert answer.status_code in (200, 303), page
            check(answer.text)
            shown += answer.text
    assert "What else would work" in shown
    assert "&lt;x-y&gt;" in shown
