"""YAML as text: every scalar stays what was written, so that 0.1 is one tenth and NO is Norway.

Anchors, aliases, tags, duplicate keys and absurd nesting are refused: a policy needs none of them, and they
are how YAML bombs are built.
"""

from __future__ import annotations

from typing import Any

import yaml

from maskwright.errors import PolicyError

MAX_BYTES = 1 << 20
MAX_DEPTH = 40


class _Loader(yaml.SafeLoader):
    """Resolves nothing but null."""


_Loader.yaml_implicit_resolvers = {
    first: [("tag:yaml.org,2002:null", pattern) for tag, pattern in resolvers if tag.endswith(":null")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_yaml(source: bytes, name: str) -> Any:
    """Parse YAML into mappings, lists, None and strings. Errors name the file and the line."""
    if len(source) > MAX_BYTES:
        raise PolicyError(f"{name}: larger than {MAX_BYTES >> 20} MiB, which no policy is")
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise PolicyError(f"{name}: not UTF-8 text (byte {problem.start}); save the file as UTF-8") from None
    try:
        _refuse_tricks(text, name)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            return None if node is None else _plain(node, name)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as problem:
        line = f", line {problem.problem_mark.line + 1}" if problem.problem_mark else ""
        raise PolicyError(f"{name}{line}: not valid YAML: {problem.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        first_line = (str(problem).splitlines() or ["unreadable"])[0]
        raise PolicyError(f"{name}: not valid YAML: {first_line}") from None


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _refuse_tricks(text: str, name: str) -> None:
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise PolicyError(f"{name}, line {_line(event)}: anchors and aliases are not allowed")
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
            if depth > MAX_DEPTH:
                raise PolicyError(f"{name}, line {_line(event)}: nested too deeply")
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1


def _plain(node: yaml.Node, name: str) -> Any:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode):
        return None if node.tag == "tag:yaml.org,2002:null" else node.value
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, name) for item in node.value]
    if not isinstance(node, yaml.MappingNode):
        raise PolicyError(f"{name}, line {line}: not something a policy can hold")
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise PolicyError(f"{name}, line {key_node.start_mark.line + 1}: a key must be plain text")
        key = key_node.value
        if key in result:
            raise PolicyError(f"{name}, line {key_node.start_mark.line + 1}: {key!r} is given twice")
        result[key] = _plain(value_node, name)
    return result


class _Dumper(yaml.SafeDumper):
    """Quotes only what the loader above would not read back as the same text."""

    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists inside mappings, which PyYAML does not."""
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Double quotes escape whatever does not print; other styles fold some line ends into blanks."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _text)


def _texts(value: Any) -> Any:
    """Numbers as the text that stands for them, since text is all the loader knows."""
    if isinstance(value, dict):
        return {str(k): _texts(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_texts(v) for v in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, (int, float)) else value


def dump_yaml(value: Any) -> str:
    """Readable YAML: short collections on one line."""
    return yaml.dump(
        _texts(value), Dumper=_Dumper, default_flow_style=None, sort_keys=False, allow_unicode=True, width=100
    )
