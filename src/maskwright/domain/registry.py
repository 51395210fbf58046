"""Registries: what a policy can name, and where its class lives. A class is imported when it is first used.

A run uses two or three of some forty registered classes; importing them all would take longer than the search.
Classes of other packages are found by their entry points (the groups are called like our packages,
`maskwright.models` …), by `register_class`, and where one of their instances is handed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from maskwright.errors import UsageError

T = TypeVar("T")
OURS = "maskwright"


class Registry(Mapping[str, type[T]], Generic[T]):
    """Name → class, for the classes of one package."""

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        """`places` says "module:Class" for each name, the module being in `package`."""
        self._package = package
        self._places = dict(places)
        self._added: dict[str, type[T]] = {}

    def add(self, name: str, cls: type[T]) -> None:
        """Register a class that lives elsewhere."""
        self._added[name] = cls

    def remove(self, name: str) -> None:
        """Forget a class that was added."""
        del self._added[name]

    def __getitem__(self, name: str) -> type[T]:
        if name in self._added:
            return self._added[name]
        if name not in self._places:
            outside: type[T] = load_plugin(plugin_entries(self._package)[name])
            return outside
        module, _, cls = self._places[name].partition(":")
        found: type[T] = getattr(import_module(f"{self._package}.{module}"), cls)
        return found

    def _names(self) -> dict[str, None]:
        return dict.fromkeys([*self._places, *self._added, *plugin_entries(self._package)])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._places or name in self._added or name in plugin_entries(self._package)

    def class_named(self, name: str) -> type[T]:
        """By the name of the class, so that `maskwright.models.KAnonymity` works."""
        for key, place in self._places.items():
            if place.endswith(f":{name}"):
                return self[key]
        raise AttributeError(f"module {self._package!r} has no attribute {name!r}")


@cache
def plugin_entries(package: str) -> dict[str, EntryPoint]:
    """What installed packages offer for one of our registries, by name."""
    return {entry.name: entry for entry in entry_points(group=package)}


def load_plugin(entry: EntryPoint) -> Any:
    """What an installed package offers under a name; refused where its code cannot be imported."""
    try:
        return entry.load()
    except Exception as problem:  # whatever an import of somebody else's code can raise
        raise UsageError(
            f"the plug-in {entry.name!r} ({entry.value}) cannot be imported: {type(problem).__name__}: {problem}; "
            "repair or uninstall the package that offers it"
        ) from problem


def is_outside(thing: object) -> bool:
    """Whether a class, or the class of an instance, is a third party's: nothing of it is ever guaranteed."""
    cls = thing if isinstance(thing, type) else type(thing)
    return cls.__module__.partition(".")[0] != OURS


def register_class(cls: Any) -> None:
    """Make a class of another package known by its `name`: a model, method or attack (its `kind` says which).

    Registering it again replaces it, as a notebook does whose cell is run twice; a name of ours cannot be taken.
    """
    kind, name = getattr(cls, "kind", ""), getattr(cls, "name", "")
    if not kind or not isinstance(name, str) or not name:
        raise UsageError(
            f"{getattr(cls, '__name__', cls)!s} cannot be registered: derive it from Model, Method or Attack "
            "(maskwright.plugins), and give it a `name`"
        )
    registry = import_module(f"{OURS}.{kind}")
    known: Registry[Any] = getattr(registry, kind.upper())
    if name in known and not is_outside(known[name]):
        raise UsageError(
            f"{kind.removesuffix('s')} {name!r}: this name is taken; give {cls.__name__} another `name`"
        )
    known.add(name, cls)
