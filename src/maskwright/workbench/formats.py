"""Values as the pages show them."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

from markupsafe import Markup, escape


def shown_number(value: Any) -> str:
    """A measured value for people: thousands with commas, fractions with their decimal."""
    if isinstance(value, str) and "/" in value:
        share = Fraction(value)
        return f"{value} ({float(share):.4g})" if share.denominator <= 1000 else f"{float(share):.4g}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def as_share(value: Any) -> float:
    """Any measured value as a float, for bars and charts."""
    try:
        return float(Fraction(value)) if isinstance(value, str) else float(value)
    except (ValueError, ZeroDivisionError):
        return 0.0


def embedded_json(value: Any) -> str:
    """Data for a script, as a block of JSON that no browser executes and nothing inside can end."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace("&", "\\u0026")


def docstring_markup(text: str) -> Markup:
    """A docstring's `code` and *words* as HTML."""
    escaped = str(escape(text))
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    return Markup(re.sub(r"(?<!\w)\*(\w[^*]*)\*(?!\w)", r"<em>\1</em>", escaped))  # noqa: S704 - escaped above
