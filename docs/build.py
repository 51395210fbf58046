"""Rebuild the generated pages: the policy schema, the index of everything registered, the example of a comparison.

Run by `make docs`; a test fails when the committed files are not what this makes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import maskwright
from maskwright.api import compare, policy_schema
from maskwright.attacks import ATTACKS
from maskwright.attacks.minimality import Minimality
from maskwright.comparing.output import chart
from maskwright.core.settings import Registered
from maskwright.methods import METHODS
from maskwright.metrics import METRICS
from maskwright.models import MODELS
from maskwright.terminal import comparison_lines

DOCS = Path(__file__).parent


def pages() -> dict[Path, str]:
    """File → content."""
    return {
        DOCS / "policy.schema.json": json.dumps(policy_schema(), indent=1, ensure_ascii=False) + "\n",
        DOCS / "reference.md": reference(),
        **comparison(),
    }


def comparison() -> dict[Path, str]:
    """The example of compare.md: its table and its chart, made anew and not remembered."""
    page = DOCS / "compare.md"
    adult = Path(maskwright.__path__[0]) / "data" / "adult"
    grid = {"k": [5, 20, 100], "l": [2, 4, 8], "method": ["optimal-lattice", "mondrian"]}
    known = os.environ.get("MASKWRIGHT_STATE")
    with TemporaryDirectory() as state:
        os.environ["MASKWRIGHT_STATE"] = state
        try:
            with repeatable():
                found = compare(adult / "adult.csv", adult / "occupation.yaml", grid=grid)
        finally:
            os.environ.pop("MASKWRIGHT_STATE")
            if known is not None:
                os.environ["MASKWRIGHT_STATE"] = known
    lines = "\n".join(comparison_lines(found, Path("/tmp/comparison")))  # noqa: S108 - only words on a page
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition("```text\n")
    after = rest[rest.index("```") :]
    return {page: f"{before}```text\n{lines}\n{after}", DOCS / "compare.svg": chart(found).file()}


@contextmanager
def repeatable() -> Iterator[None]:
    """Attacks that draw worlds stop after so many, however long it takes: a page must not depend on the machine."""
    usual = {name: Minimality.model_fields[name].default for name in ("draws", "seconds")}
    _defaults({"draws": 100, "seconds": 1e6})
    try:
        yield
    finally:
        _defaults(usual)


def _defaults(values: Mapping[str, float]) -> None:
    for name, value in values.items():
        Minimality.model_fields[name].default = value
    Minimality.model_rebuild(force=True)


def reference() -> str:
    lines = [
        "# Reference",
        "",
        "Everything a policy can name, with its settings. Made by `make docs` from the classes themselves.",
    ]
    for title, folder, registry in (
        ("Models", "models", MODELS),
        ("Methods", "methods", METHODS),
        ("Attacks", "attacks", ATTACKS),
    ):
        lines += ["", f"## {title}", "", "| name | what it is | settings |", "| --- | --- | --- |"]
        for name, cls in registry.items():
            lines.append(f"| [{name}]({folder}/{name}.md) | {cls.summary_line()} | {settings(cls)} |")
    lines += ["", "## Metrics", "", "| name | what it is | scale |", "| --- | --- | --- |"]
    for name, metric in METRICS.items():
        lines.append(f"| [{name}](metrics/README.md#{name}) | {metric.summary_line()} | {metric.meaning} |")
    return "\n".join(lines) + "\n"


def settings(cls: type[Registered]) -> str:
    """The fields of a class: `k`, `objective` = information-loss …"""
    parts = []
    for name, field in cls.model_fields.items():
        default = "" if field.is_required() or field.default is None else f" = {field.default}"
        parts.append(f"`{name}`{default}")
    return ", ".join(parts)


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(DOCS.parent))
