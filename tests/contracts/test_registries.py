"""Everything registered is named alike, explained, documented and buildable; nothing lies about unregistered."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import maskwright
from maskwright.api import policy_schema
from maskwright.domain.adversary import Attack
from maskwright.domain.method import Method
from maskwright.domain.model import Model
from maskwright.domain.settings import Registered, build_registered
from maskwright.errors import PolicyError

DOCS = Path(__file__).parents[2] / "docs"
KINDS: dict[str, type[Registered]] = {"models": Model, "methods": Method, "attacks": Attack}


def registry(kind: str) -> Mapping[str, type[Registered]]:
    return getattr(import_module(f"maskwright.{kind}"), kind.upper())  # type: ignore[no-any-return]


ITEMS = [(kind, name) for kind in KINDS for name in registry(kind)]


@pytest.mark.parametrize(("kind", "name"), ITEMS)
def test_named_and_explained(kind: str, name: str) -> None:
    cls = registry(kind)[name]
    assert cls.name == name
    assert issubclass(cls, KINDS[kind])
    line = cls.summary_line()
    assert line.endswith("."), line
    assert 15 < len(line) < 140
    page = DOCS / kind / f"{name}.md"
    assert page.is_file(), f"{page} is missing"
    text = page.read_text(encoding="utf-8")
    assert f"`{name}`" in text or f"model: {name}" in text or name in text.splitlines()[0]
    assert "xample" in text, "a page without an example explains nothing"


@pytest.mark.parametrize(("kind", "name"), ITEMS)
def test_unknown_settings_are_refused(kind: str, name: str) -> None:
    with pytest.raises(PolicyError, match="nonsense"):
        build_registered(registry(kind), kind, name, {"nonsense": 1}, "here")


@pytest.mark.parametrize("kind", list(KINDS))
def test_no_class_is_left_out(kind: str) -> None:
    package = import_module(f"maskwright.{kind}")
    found = set()
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        for _, cls in inspect.getmembers(import_module(module.name), inspect.isclass):
            concrete = issubclass(cls, KINDS[kind]) and "name" in vars(cls)
            if concrete and cls.__module__ == module.name:
                found.add(cls)
    assert found == set(registry(kind).values())


def test_the_schema_offers_everything() -> None:
    schema = policy_schema()
    models = {
        item["properties"]["model"]["const"] for item in schema["properties"]["require"]["items"]["oneOf"]
    }
    assert models == set(registry("models"))
    methods = {
        item["properties"]["name"]["const"]
        for item in schema["properties"]["method"]["oneOf"]
        if "properties" in item
    }
    assert methods == set(registry("methods"))


def test_the_public_names_are_sorted_and_there() -> None:
    assert maskwright.__all__ == sorted(maskwright.__all__)
    for name in maskwright.__all__:
        assert getattr(maskwright, name) is not None


@pytest.mark.parametrize("kind", ["models", "methods"])
def test_models_and_methods_are_found_at_the_top(kind: str) -> None:
    for cls in registry(kind).values():
        assert getattr(maskwright, cls.__name__) is cls
        assert getattr(getattr(maskwright, kind), cls.__name__) is cls


def test_what_type_checkers_are_told_of_models_and_methods_is_registered() -> None:
    for node in ast.walk(ast.parse(Path(maskwright.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            kind = node.module.removeprefix("maskwright.").partition(".")[0]
            homes = {cls.__name__: cls.__module__ for cls in registry(kind).values()} if kind in KINDS else {}
            for alias in node.names if homes else ():
                assert homes[alias.name] == node.module
                assert alias.name in maskwright.__all__


def test_importing_the_package_imports_nothing_else() -> None:
    """Names are looked up when they are used: the command line starts at once."""
    code = "import sys, maskwright; print(*sorted(m.partition('.')[0] for m in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pydantic", "duckdb", "yaml"} & set(run.stdout.split())


def test_a_name_that_there_is_not_is_said_to_be_missing() -> None:
    with pytest.raises(AttributeError, match="module 'maskwright' has no attribute 'KAnonymty'"):
        maskwright.KAnonymty  # noqa: B018


@pytest.mark.parametrize("name", registry("attacks"))
def test_every_attack_says_for_whom_it_counts(name: str) -> None:
    """Requirements on belief decide by it: an attack that says nothing would count for every adversary."""
    attack = registry("attacks")[name]
    assert {"about", "takes"} <= vars(attack).keys()
