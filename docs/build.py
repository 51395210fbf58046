"""Rebuild the generated pages: the policy schema, the indexes of everything registered and of what Python can call.

Run by `make docs`; a test fails when the committed files are not what this makes.
"""

from __future__ import annotations

import csv
import inspect
import json
import os
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import maskwright
from maskwright.api import compare, policy_schema
from maskwright.attacks import ATTACKS
from maskwright.attacks.minimality import Minimality
from maskwright.auditing.table_check import DBT_FILE, dbt_macros
from maskwright.cli.terminal import comparison_lines
from maskwright.comparing.output import comparison_chart
from maskwright.domain.model import Model
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
        DOCS / "python.md": python_reference(),
        DOCS / "methods" / "README.md": methods_index(),
        DOCS.parent / DBT_FILE: dbt_macros(),
        DOCS / "promise.md": promises(),
        DOCS / "how-it-works.md": packages(),
        DOCS / "attacks" / "minimality.md": minimality_on_adult(),
        **comparison(),
    }


METHOD_SETTINGS: dict[str, dict[str, Any]] = {
    "optimal-lattice": {"name": "optimal-lattice"},
    "samarati": {"name": "samarati"},
    "incognito": {"name": "incognito"},
    "local-recoding": {"name": "local-recoding"},
    "local-suppression": {"name": "local-suppression"},
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


FOUND = ("exact", "sampled", "estimated", "bounded")
WORLDS = re.compile(r"in (\d+ of \d+) worlds")


def minimality_on_adult() -> str:
    """attacks/minimality.md with a row for each method: what is believed of its releases of Adult, model by model."""
    with (DOCS / "attacks" / "minimality-on-adult.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    heads = ["method", *FOUND, "at most 1 (kept of the worlds drawn)", "nothing published", "seconds"]
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        told = [row for row in mine if row["label"]]
        narrow = [row for row in told if not _wide(row)]
        cells = ["; ".join(_believed(row) for row in narrow if row["label"] == label) for label in FOUND]
        cells.append("; ".join(_not_narrowed(row) for row in told if _wide(row)))
        cells.append(", ".join(row["model"] for row in mine if not row["label"]))
        seconds = [float(row["seconds"]) for row in told]
        cells.append(f"{min(seconds):g} to {max(seconds):g}" if seconds else "")
        lines.append(f"| {' | '.join([method, *cells])} |")
    return between((DOCS / "attacks" / "minimality.md").read_text(encoding="utf-8"), "adult", lines)


def _wide(row: Mapping[str, str]) -> bool:
    return row["label"] not in FOUND or float(row["low"]) < 1 <= float(row["high"])


def _believed(row: Mapping[str, str]) -> str:
    low, high = float(row["low"]), float(row["high"])
    return f"{row['model']} {low:g}" if low == high else f"{row['model']} {low:g}–{high:g}"


def _not_narrowed(row: Mapping[str, str]) -> str:
    if row["label"] not in FOUND:
        return f"{row['model']} ({row['label']}: {row['why']})"
    kept = WORLDS.search(row["why"])
    return f"{row['model']} ({kept[1] if kept else 'nearly 1'})"


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
        if registry is MODELS:
            lines += ["", without_rules()]
    lines += ["", "## Metrics", "", "| name | what it is | scale |", "| --- | --- | --- |"]
    for name, metric in METRICS.items():
        lines.append(f"| [{name}](metrics/README.md#{name}) | {metric.summary_line()} | {metric.meaning} |")
    return "\n".join(lines) + "\n"


STEPS = ("PolicyDraft", "Release", "Recoder")  # classes of which people call methods
ARGUMENT = re.compile(r"^    ?(?:    )?(\w+): (.*)$")


def python_reference() -> str:
    """python.md: what can be called, with its arguments."""
    lines = [
        "# In Python",
        "",
        "Every function of `import maskwright as mw`, and the steps and results that have methods of their own.",
        "Made by `make docs` from the docstrings, which completion shows as well. Models, methods, attacks and metrics",
        "are on [a page of their own](reference.md); notebooks on [another](notebook.md).",
    ]
    for name in maskwright.__all__:
        thing = getattr(maskwright, name)
        if inspect.isfunction(thing):
            lines += ["", f"## `mw.{name}`", *_described(name, thing)]
    for name in STEPS:
        cls = getattr(maskwright, name)
        lines += ["", f"## `mw.{name}`", "", *_text(inspect.getdoc(cls) or "")]
        for method, function in vars(cls).items():
            plain = getattr(function, "__func__", function)  # of a class or static method
            if inspect.isfunction(plain) and not method.startswith("_"):
                lines += ["", f"### `{name}.{method}`", *_described(method, plain)]
    return "\n".join(lines) + "\n"


def _described(name: str, function: Callable[..., Any]) -> Iterator[str]:
    """The signature of a function, and its docstring as Markdown."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]
    shown = [str(p.replace(annotation=inspect.Parameter.empty)) for p in parameters]
    first = next((i for i, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY), None)
    if first is not None and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        shown.insert(first, "*")
    call = textwrap.wrap(f"{name}({', '.join(shown)})", 100, subsequent_indent="    ", break_on_hyphens=False)
    yield from ("", "```text", *call, "```", "")
    yield from _text(inspect.getdoc(function) or "")


def _text(docstring: str) -> Iterator[str]:
    """A docstring as Markdown: what follows `Args:` or `Attributes:` becomes a list."""
    listing = False
    for line in docstring.splitlines():
        if line in ("Args:", "Attributes:"):
            listing = True
        elif listing and (found := ARGUMENT.match(line)):
            yield f"* `{found[1]}`: {found[2]}"
        elif listing and line.startswith("    "):
            yield f"  {line.strip()}"
        else:
            listing = listing and not line.strip()
            yield line


def methods_index() -> str:
    """methods/README.md: every method in a line, how it looks for a release, and when its bounds on belief hold."""
    lines = [
        "# Methods",
        "",
        "A method finds the classes of a release. All of them take any requirement as a gate; which one to take is on",
        "[its own page](../choose.md), and `maskwright advise` chooses for a table. Made by `make docs`.",
        "",
        "| method | in one line | what it can be told |",
        "| --- | --- | --- |",
    ]
    lines += [
        f"| [{name}]({name}.md) | {cls.summary_line()} | {settings(cls)} |" for name, cls in METHODS.items()
    ]
    lines += [
        "",
        "What is *guaranteed* with each of them, and under which conditions, is the table of",
        "[what is promised](../promise.md). `maskwright compare table.csv -p policy.yaml --grid method=mondrian,codip`",
        "holds methods against each other on a table ([page](../compare.md)); your own method is a",
        "[plug-in](../plugins.md), and can be [attacked](../attacks/your-own-method.md) as it is.",
    ]
    return "\n".join(lines) + "\n"


def without_rules() -> str:
    """A sentence that names the models that searches decide in Python."""
    slow = [name for name, cls in MODELS.items() if cls.kernel is Model.kernel]
    return (
        f"Searches decide these models in Python, not by a compiled rule: {', '.join(slow)}. "
        "The rules of the models beside them are decided first, which settles most nodes."
    )


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
