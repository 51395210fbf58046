"""Pages of docs/ with runnable code: each ```python block, and the ```text block after it with what it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n?```text\n(?P<output>.*?)```\n)?", re.DOTALL)


def printed(page: Path) -> list[tuple[str, str, str | None]]:
    """Per code block: the code, what it prints, and what the page says that it prints. Names carry over."""
    names: dict[str, Any] = {}
    found = []
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(match["code"], str(page), "exec"), names)  # noqa: S102 - our own pages
        found.append((match["code"], out.getvalue(), match["output"]))
    return found


def rewritten(page: Path) -> str:
    """The page with what its code prints now."""
    outputs = iter(printed(page))

    def block(match: re.Match[str]) -> str:
        code, output, _ = next(outputs)
        shown = f"\n```text\n{output}```\n" if output else ""
        return f"```python\n{code}```\n{shown}"

    return BLOCK.sub(block, page.read_text(encoding="utf-8"))


if __name__ == "__main__":  # python tests/pages.py docs/errata.md: put in what the code prints
    import sys

    for argument in sys.argv[1:]:
        Path(argument).write_text(rewritten(Path(argument)), encoding="utf-8")
