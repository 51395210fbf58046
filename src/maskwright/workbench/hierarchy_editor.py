"""Hierarchies as the editor sees them: a preview of every level, trees as indented text, errors at their value."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.settings import parse_settings
from maskwright.errors import HierarchyError, PolicyError
from maskwright.hierarchies import WAYS
from maskwright.hierarchies.files import File
from maskwright.hierarchies.trees import MAX_DEPTH
from maskwright.policy.policy import Column, Policy
from maskwright.policy.yaml_text import load_yaml

SHOWN = 400  # values in a preview
INDENT = 2


@dataclass(frozen=True)
class Asked:
    """What the editor sends: a hierarchy as the policy writes it, a tree as text, or a pasted table."""

    spec: Any = None
    tree: str | None = None
    csv: str | None = None
    groups: str | None = None

    def resolved(self, folder: Path, column: str) -> Any:
        """The hierarchy as the policy writes it. A pasted table becomes a file in `folder`."""
        if self.tree is not None:
            return {"tree": tree_of(self.tree)}
        if self.csv is not None:
            return {"file": _stored(folder, column, self.csv)}
        if self.groups is not None:
            return {"groups": load_yaml(self.groups.encode(), "groups")}
        return self.spec


def _stored(folder: Path, column: str, text: str) -> str:
    """Files are named by their content, so that a policy that names one never changes its meaning."""
    if not text.strip():
        raise PolicyError("paste a table: the value first, then ever coarser labels to its right")
    word = re.sub(r"[^a-z0-9]+", "-", column.lower()).strip("-")[:40] or "column"
    name = f"hierarchies/{word}-{hashlib.sha256(text.encode()).hexdigest()[:10]}.csv"
    (folder / "hierarchies").mkdir(exist_ok=True, mode=0o700)
    (folder / name).write_text(text, encoding="utf-8")
    return name


def check_inside(folder: Path, below: str, file: str, where: str) -> None:
    """Policies read files in one folder of their project (`below`), by plain names that a zip file can hold as well."""
    first, *rest = file.split("/")
    plain = (
        first == below and rest and not any(part in ("", ".", "..") or set(part) & {*"\\:"} for part in rest)
    )
    try:
        place = (folder / file).resolve()
        inside = plain and place.is_relative_to((folder / below).resolve()) and place.is_file()
    except (OSError, ValueError):  # a name that no file can have
        inside = False
    if not inside:
        remedy = (
            "paste the hierarchy instead"
            if below == "hierarchies"
            else f"put it into {below}/ of the project"
        )
        raise PolicyError(f"{where}: the project has no file {file!r} in {below}/; {remedy}")


def built_hierarchy(spec: Any, column: str, values: Sequence[str], policy: Policy, folder: Path) -> Hierarchy:
    """The hierarchy over the values that were seen; refused as the pipeline would refuse it."""
    parsed = parse_settings(Column, {"role": "quasi-identifier", "hierarchy": spec}, f"columns.{column}")
    builder = parsed.hierarchy
    if builder is None:
        raise PolicyError("say how the column may be coarsened")
    if isinstance(builder, File):
        check_inside(folder, "hierarchies", builder.file, f"columns.{column}.hierarchy")
    order = policy.columns[column].order if column in policy.columns else None
    return builder.build(column, values, folder, policy.missing.tokens, order)


def hierarchy_preview(hierarchy: Hierarchy, counts: Mapping[str, int]) -> dict[str, Any]:
    """Every level with its labels and their rows, and for each value its label at every level."""
    levels = []
    for level in hierarchy.levels:
        rows: dict[str, int] = {}
        size: dict[str, int] = {}
        for i, value in enumerate(hierarchy.values):
            label = str(level.labels[level.blocks[i + 1]])
            rows[label] = rows.get(label, 0) + counts.get(value, 0)
            size[label] = size.get(label, 0) + 1
        blocks = [{"label": k, "rows": n, "values": size[k]} for k, n in rows.items()]
        levels.append({"name": level.name, "labels": len(blocks), "blocks": blocks[:SHOWN]})
    order = _together(hierarchy)[:SHOWN]
    table = [[str(level.labels[level.blocks[i + 1]]) for level in hierarchy.levels] for i in order]
    return {
        "levels": levels,
        "table": table,
        "rows": [counts.get(hierarchy.values[i], 0) for i in order],
        "more": max(0, len(hierarchy.values) - SHOWN),
        "chain": hierarchy.is_chain,
    }


def _together(hierarchy: Hierarchy) -> list[int]:
    """The values in an order in which those that share a label stand together, where their own order means nothing."""
    if hierarchy.ordered or not hierarchy.is_chain:
        return list(range(len(hierarchy.values)))
    coarse_first = hierarchy.levels[::-1]
    return sorted(
        range(len(hierarchy.values)), key=lambda i: [int(level.blocks[i + 1]) for level in coarse_first]
    )


def _values_named(message: str, values: Sequence[str]) -> list[str]:
    """The values that an error names, so that it can be shown at them."""
    return [v for v in values if repr(v) in message][:20]


# -- trees as indented text ------------------------------------------------------------------------------------


def tree_of(text: str) -> Any:
    """Lines and their indentation as a tree: a line with deeper lines below it is a category."""
    lines: list[tuple[int, str, int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            body = line.expandtabs(INDENT)
            lines.append((len(body) - len(body.lstrip(" ")), body.strip(), number))
    if not lines:
        raise PolicyError("the tree is empty; write one value or category per line")
    tree, rest = _branch(lines, 0, lines[0][0])
    if rest < len(lines):
        raise PolicyError(f"line {lines[rest][2]} ({lines[rest][1]!r}) is indented less than the first line")
    return tree


def _branch(
    lines: Sequence[tuple[int, str, int]], at: int, depth: int, above: int = 0
) -> tuple[list[Any], int]:
    """The children at one depth, from line `at` on; and the line after them."""
    if above > MAX_DEPTH:
        raise PolicyError(f"line {lines[at][2]}: the tree is nested more than {MAX_DEPTH} deep")
    result: list[Any] = []
    while at < len(lines) and lines[at][0] >= depth:
        indent, name, number = lines[at]
        if indent > depth:
            raise PolicyError(
                f"line {number} ({name!r}) is indented more than its neighbours; align it with them"
            )
        at += 1
        if at < len(lines) and lines[at][0] > depth:
            children, at = _branch(lines, at, lines[at][0], above + 1)
            result.append({name: children})
        else:
            result.append(name)
    return result, at


def text_of_tree(tree: Any, depth: int = 0) -> str:
    """The inverse of `tree_of`, for trees from a policy file."""
    lines: list[str] = []
    if isinstance(tree, Mapping):
        for name, children in tree.items():
            lines.append(" " * INDENT * depth + str(name))
            if children is not None:
                lines.append(text_of_tree(children, depth + 1))
    elif isinstance(tree, (list, tuple)):
        lines += [text_of_tree(child, depth) for child in tree]
    else:
        lines.append(" " * INDENT * depth + str(tree))
    return "\n".join(lines)


def as_tree_text(hierarchy: Hierarchy) -> str:
    """Any hierarchy as an indented tree, to go on from: each value under its labels, from the top down."""
    root: dict[str, Any] = {}
    for i, value in enumerate(hierarchy.values):
        node = root
        path = [str(level.labels[level.blocks[i + 1]]) for level in reversed(hierarchy.levels[1:-1])]
        for above, label in zip([None, *path], [*path, value], strict=False):
            if label != above:
                node = node.setdefault(label, {})
    return text_of_tree({k: v or None for k, v in _emptied(root).items()})


def _emptied(node: dict[str, Any]) -> dict[str, Any]:
    return {name: _emptied(children) if children else None for name, children in node.items()}


def way_of(spec: Any) -> str:
    """Which way a hierarchy is written: the tab of the editor that opens first."""
    if isinstance(spec, Mapping):
        return next((key for key in spec if key in WAYS), "suppress")
    return "suppress"


def editor_refusal(
    problem: HierarchyError | PolicyError, values: Sequence[str], pasted: str | None
) -> dict[str, Any]:
    """An error for the editor: in words, and with the values concerned; of a pasted table also by their line."""
    text = str(problem)
    named = _values_named(text, values)
    if pasted is not None:
        text = re.sub(r"hierarchy file '[^']*'", "the pasted table", text)
        lines = pasted.splitlines()
        for number in map(int, re.findall(r"\bline (\d+)", text)):
            first = (
                re.split(r"[;,\t]", lines[number - 1])[0].strip().strip('"') if number <= len(lines) else ""
            )
            named += [first] if first in values and first not in named else []
    return {"error": text, "values": named}
