"""A category tree (taxonomy): at each level a value is replaced by its ancestor at that depth."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from maskwright.domain.exact import short_repr
from maskwright.domain.missing_values import missing_texts
from maskwright.domain.value_labels import group_label
from maskwright.domain.values import arrange_values, canonical_text, check_covered
from maskwright.errors import HierarchyError
from maskwright.hierarchies.builder import Builder, Ladder
from maskwright.hierarchies.groups import refuse_twins

MAX_DEPTH = 30
MAX_NODES = 1_000_000


def _normal(value: Any) -> Any:
    """The tree as mappings (name → children), lists (children) and texts (ground values)."""
    budget = [MAX_NODES]

    def _walk(node: Any, depth: int) -> Any:
        budget[0] -= 1
        if depth > MAX_DEPTH:
            raise ValueError(f"the tree is nested more than {MAX_DEPTH} deep")
        if budget[0] < 0:
            raise ValueError(f"the tree has more than {MAX_NODES} nodes")
        if not isinstance(node, (Mapping, list, tuple)):
            return canonical_text(node)
        if not node:
            raise ValueError("a node of the tree is empty; list its values, or remove it")
        if not isinstance(node, Mapping):
            return [_walk(child, depth + 1) for child in node]
        named = {canonical_text(name): _children(child, depth) for name, child in node.items()}
        if len(named) != len(node):
            raise ValueError(f"two nodes of the tree have the same name in {short_repr(list(node))}")
        return named

    def _children(child: Any, depth: int) -> Any:
        """A name without children is a ground value; a single text is its only child."""
        if child is None:
            return None
        return _walk(child if isinstance(child, (Mapping, list, tuple)) else [child], depth + 1)

    if not isinstance(value, (Mapping, list, tuple)):
        raise ValueError(f"{short_repr(value)} is no tree; write {{Married: [x, y], Single: [z]}}")  # noqa: TRY004
    return _walk(value, 1)


@dataclass(eq=False)
class _Node:
    label: str | None
    leaves: list[str] = field(default_factory=list)


class Tree(Builder):
    """Categories within categories, to any depth."""

    tree: Annotated[Any, PlainValidator(_normal), WithJsonSchema({"type": ["object", "array"]})] = Field(
        description="{Married: [x, y], Single: [z]}; branches may differ in depth"
    )

    def ladder(
        self,
        attribute: str,
        values: Sequence[str],
        folder: Path,
        missing: Collection[str],
        order: Sequence[str] | None = None,
    ) -> Ladder:
        """Label every value by its ancestor at each depth."""
        paths = self._paths(attribute, missing)
        check_covered(
            attribute, values, paths, "the hierarchy", "add them to the tree, or declare them as missing"
        )
        ground, ordered = arrange_values(attribute, paths, order)
        deepest = max((len(path) for path in paths.values()), default=0)
        levels = [
            (f"depth {depth}", _labels(attribute, [paths[value] for value in ground], depth))
            for depth in range(deepest - 1, 0, -1)
        ]
        return Ladder(ground, levels, ordered)

    def _paths(self, attribute: str, missing: Collection[str]) -> dict[str, list[_Node]]:
        """For every ground value the nodes from below the root down to itself."""
        paths: dict[str, list[_Node]] = {}
        absent = missing_texts(missing)

        def _leaf(value: str, above: list[_Node]) -> None:
            if value in paths:
                raise HierarchyError(
                    f"column {attribute!r}: the tree lists {short_repr(value)} twice; leave it in one place"
                )
            if value not in absent:
                paths[value] = [*above, _Node(value, [value])]
                for node in above:
                    node.leaves.append(value)

        def _walk(node: Any, above: list[_Node]) -> None:
            if isinstance(node, dict):
                for name, children in node.items():
                    if children is None:
                        _leaf(name, above)
                    else:
                        _walk(children, [*above, _Node(name)])
                return
            for child in node:
                if isinstance(child, str):
                    _leaf(child, above)
                else:
                    _walk(child, above if isinstance(child, dict) else [*above, _Node(None)])

        _walk(self.tree, [])
        return paths


def _labels(attribute: str, paths: Sequence[Sequence[_Node]], depth: int) -> list[str]:
    nodes = [path[min(depth, len(path)) - 1] for path in paths]
    labels = {
        id(node): node.label if node.label is not None else group_label(sorted(node.leaves)) for node in nodes
    }
    refuse_twins(attribute, labels)
    return [labels[id(node)] for node in nodes]
