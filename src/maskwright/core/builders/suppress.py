"""Suppression: a value is either exact or `*`. What a quasi-identifier without a hierarchy gets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pydantic import GetJsonSchemaHandler, model_serializer
from pydantic_core import CoreSchema

from maskwright.core.builders.base import Builder, arrange
from maskwright.core.hierarchy import Hierarchy


class Suppress(Builder):
    """Exact or not at all."""

    @model_serializer
    def _word(self) -> str:
        return "suppress"

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"const": "suppress", "description": cls.__doc__, "title": cls.__name__}

    def build(
        self,
        attribute: str,
        values: Sequence[str],
        folder: Path,
        missing: Collection[str],
        order: Sequence[str] | None = None,
    ) -> Hierarchy:
        ground, ordered = arrange(attribute, values, order)
        return Hierarchy.of(attribute, ground, [], ordered=ordered)
