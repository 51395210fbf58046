"""Registries: what a policy can name, and where its class lives. A class is imported when it is first used.

A run uses two or three of some forty registered classes; importing them all would take longer than the search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


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
        module, _, cls = self._places[name].partition(":")
        found: type[T] = getattr(import_module(f"{self._package}.{module}"), cls)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter([*self._places, *self._added])

    def __len__(self) -> int:
        return len(self._places) + len(self._added)

    def __contains__(self, name: object) -> bool:
        return name in self._places or name in self._added

    def class_named(self, name: str) -> type[T]:
        """By the name of the class, so that `maskwright.models.KAnonymity` works."""
        for key, place in self._places.items():
            if place.endswith(f":{name}"):
                return self[key]
        raise AttributeError(f"module {self._package!r} has no attribute {name!r}")
