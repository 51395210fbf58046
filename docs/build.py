"""Rebuild the generated pages: the policy schema, the index of everything registered, the example of a comparison.

Run by `make docs`; a test fails when the committed files are not what this makes.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import maskwright
from maskwright.api import compare, policy_schema
from maskwright.attacks import ATTACKS
from maskwright.attacks.minimality import Minimality
from maskwright.cli.terminal import comparison_lines
from maskwright.comparing.output import comparison_chart
from maskwright.domain.settings import Registered
from maskwright.errors import PolicyError
from maskwright.methods import METHODS
from maskwright.metrics import METRICS
from maskwright.models import MODELS
from maskwright.pipeline.attacking import ADVERSARIES
from maskwright.policy.binding import promises_before
from maskwright.promise.lemmas import LEMMAS

DOCS = Path(__file__).parent


def pages() -> dict[Path, str]:
    """File → content."""
    return {
        DOCS / "policy.schema.json": json.dumps(policy_schema(), indent=1, ensure_ascii=False) + "\n",
        DOCS / "reference.md": reference(),
        DOCS / "promise.md": promises(),
        DOCS / "how-it-works.md": packages(),
        **comparison(),
    }


METHOD_SETTINGS: dict[str, dict[str, Any]] = {
    "optimal-lattice": {"name": "optimal-lattice"},
    "samarati": {"name": "samarati"},
    "incognito": {"name": "incognito"},
    "local-recoding": {"name": "local-recoding"},
    "mondrian": {"name": "mondrian"},
    "mondrian, cut: relaxed": {"name": "mondrian", "cut": "relaxed"},
    "mondrian, cut: strict": {"name": "mondrian", "cut": "strict"},
    "greedy-grouping": {"name": "greedy-grouping"},
    "symmetric-grouping": {"name": "symmetric-grouping"},
    "anatomy": {"name": "anatomy"},
    "alpha-k-local": {"name": "alpha-k-local"},
    "mask": {"name": "mask", "l": 2, "values": ["x"]},
    "codip, given plan": {"name": "codip", "plan": [["s"], ["t"]]},
    "codip, greedy or best": {"name": "codip"},
}
SIZE = {"model": "k-anonymity", "k": 2}
HALF = {"model": "belief", "max": "1/2", "attribute": "s"}
SEARCHED = {"model": "entropy-l-diversity", "l": 2, "attribute": "s"}
ONE_SET = {"role": "sensitive", "sensitive_sets": [["x"]]}
INGREDIENTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "one set of values": {"columns": {"s": ONE_SET}},
    "searches entropy": {"require": [SIZE, SEARCHED, HALF]},
    "t-closeness as gate": {
        "require": [SIZE, HALF, {"model": "t-closeness", "t": "1/2", "attribute": "s", "use": "gate"}]
    },
    "two columns": {"columns": {"t": "sensitive"}},
    "insider": {"require": [SIZE, HALF | {"adversary": "insider"}]},
    "`unit`": {"unit": "id", "columns": {"id": "identifier"}},
    "missing rows dropped": {"missing": {"rows": "drop"}},
    "insensitive column": {"columns": {"v": "insensitive"}},
}


def promises() -> str:
    """promise.md with its tables: the lemmas, and what each ingredient does to the promise of each method."""
    lines = ["| method | " + " | ".join(INGREDIENTS) + " |", "| --- |" + " --- |" * len(INGREDIENTS)]
    for name, method in METHOD_SETTINGS.items():
        cells = [promised(method, changes) for changes in INGREDIENTS.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    page = between((DOCS / "promise.md").read_text(encoding="utf-8"), "table", lines)
    return between(page, "lemmas", lemmas())


def lemmas() -> list[str]:
    """The table of the lemmas: what each says and asks for, and the test that enumerates it."""
    lines = ["| lemma | says | conditions | checked by |", "| --- | --- | --- | --- |"]
    for name, lemma in LEMMAS.items():
        file = f"../src/{lemma.proof.replace('.', '/')}.py"
        test = lemma.checked_by.partition("::")[0]
        lines.append(
            f"| [{name}]({file}) | {lemma.says} | {'; '.join(lemma.conditions)} | [{test}](../{test}) |"
        )
    return lines


def promised(method: Mapping[str, Any], changes: Mapping[str, Any]) -> str:
    """The promise of a policy about its column s: guaranteed, measured, or refused."""
    columns: dict[str, Any] = {"q": "quasi-identifier", "s": "sensitive"}
    if method["name"] == "codip":
        columns["t"] = "sensitive"
    recoding = {"recoding": "bucketize"} if method["name"] == "anatomy" else {}
    values = {"require": [SIZE, HALF], "method": dict(method)} | recoding | dict(changes)
    values["columns"] = columns | dict(changes.get("columns", {}))
    try:
        policy = maskwright.Policy.load(values)
        who = next(
            r.parameters.get("adversary", "knows-method") for r in policy.require if r.name == "belief"
        )
        found = promises_before(policy, ADVERSARIES[who])
        return next(p.status for p in found if p.attribute == "s")
    except PolicyError:
        return "refused"


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
    return {page: f"{before}```text\n{lines}\n{after}", DOCS / "compare.svg": comparison_chart(found).file()}


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


def packages() -> str:
    """how-it-works.md with its picture: the packages in the order in which they may import each other."""
    contracts = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]
    layers = next(c["layers"] for c in contracts["contracts"] if c["type"] == "layers")
    lines = ["```text"]
    for layer in layers:
        names = [name.strip() for name in layer.split("|")]
        for i, name in enumerate(names):
            docstring = import_module(name).__doc__ or ""
            first = " ".join(docstring.split("\n\n")[0].split())
            rule = "─" if len(names) == 1 else "┌" if i == 0 else "└" if i == len(names) - 1 else "│"
            lines.append(f"{rule} {name.removeprefix('maskwright.'):20} {first}")
    lines.append("```")
    return between((DOCS / "how-it-works.md").read_text(encoding="utf-8"), "packages", lines)


def between(page: str, name: str, lines: list[str]) -> str:
    """The text of a page with these lines between the marks of a name."""
    before, rest = page.split(f"<!-- {name} -->")
    _, after = rest.split(f"<!-- end of {name} -->")
    text = "\n".join(lines)
    return f"{before}<!-- {name} -->\n{text}\n<!-- end of {name} -->{after}"


def reference() -> str:
    """reference.md: everything that is registered, with its settings."""
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
        value = field.get_default(call_default_factory=True)
        default = "" if field.is_required() or value is None else f" = {value}"
        parts.append(f"`{name}`{default}")
    return ", ".join(parts)


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(DOCS.parent))
