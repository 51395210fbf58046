"""Rebuild the generated pages: the policy schema, and the index of everything that is registered.

Run by `make docs`; a test fails when the committed files are not what this makes.
"""

from __future__ import annotations

import json
from pathlib import Path

from maskwright.api import policy_schema
from maskwright.attacks import ATTACKS
from maskwright.core.settings import Registered
from maskwright.methods import METHODS
from maskwright.metrics import METRICS
from maskwright.models import MODELS

DOCS = Path(__file__).parent


def pages() -> dict[Path, str]:
    """File → content."""
    return {
        DOCS / "policy.schema.json": json.dumps(policy_schema(), indent=1, ensure_ascii=False) + "\n",
        DOCS / "reference.md": reference(),
    }


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
