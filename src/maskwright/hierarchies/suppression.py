"""Suppression: a value is either exact or `*`. What a quasi-identifier without a hierarchy gets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pydantic import GetJsonSchemaHandler, model_serializer
from pydantic_core import CoreSchema

from maskwright.domain.settings import docstring_of
from maskwright.domain.values import arrange_values
from maskwright.hierarchies.builder import Builder, Ladder


class Suppress(Builder):
    """Exact or not at all."""

    @model_serializer
    def _word(self) -> str:
        return "suppress"

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"const": "suppress", "description": docstring_of(cls), "title": cls.__name__}

    def ladder(
        self,
        attribute: str,
        values: Sequence[str],
        folder: Path,
        missing: Collection[str],
        order: Sequence[str] | None = None,
    ) -> Ladder:
        """List the values; there is no level between them and the top."""
        ground, ordered = arrange_values(attribute, values, order)
        return Ladder(ground, [], ordered)
