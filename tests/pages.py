"""Pages of docs/ with runnable code: each ```python block, and the ```text block after it with what it prints.

Tutorials also have ```console blocks (commands, and what they print) and ```yaml blocks (files, by their first line).
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any

from maskwright.cli import commands

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


TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"


def blocks(page: Path) -> list[tuple[str, str]]:
    """The fenced blocks of a page: their language and text."""
    return re.findall(
        r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


def matches(shown: str, printed: str) -> None:
    """Every line of the page is printed, in this order; `...` stands for whatever comes between or at the end."""
    pieces = [re.escape(piece.strip()) for piece in re.split(r"\.\.\.", shown.strip())]
    pattern = r"\A\s*" + r"[\s\S]*?".join(pieces) + (r"\s*\Z" if not shown.strip().endswith("...") else "")
    assert re.search(pattern, printed), f"the page says\n{shown}\nbut there is\n{printed}"


def run_commands(text: str) -> None:
    """Lines that begin with $ are typed, the others are what is printed."""
    status = 0
    for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, shown = piece.partition("\n")
        if line == "echo $?":
            assert shown.strip() == str(status), text
            continue
        words, _, into = line.partition(" > ")
        name, *arguments = shlex.split(words)
        assert name == "maskwright", line
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO() if into else out):
            try:
                status = commands.main(arguments)
            except SystemExit as end:
                status = int(end.code or 0)
        if into:
            Path(into).write_text(out.getvalue(), encoding="utf-8")
        else:
            matches(shown, out.getvalue())


def run_page(page: Path, names: dict[str, Any]) -> int:
    """Do what a page says; the number of blocks that were run."""
    printed, done = "", 0
    for language, text in blocks(page):
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as caught:
                exec(compile(text, page.name, "exec"), names)  # noqa: S102 - our own pages
            printed = caught.getvalue()
        elif language == "text" and printed:
            matches(text, printed)
            printed = ""
        elif language == "yaml":
            Path(text.split("\n", 1)[0].removeprefix("# ")).write_text(text, encoding="utf-8")
        elif language == "console":
            run_commands(text)
        else:
            continue
        done += 1
    return done
