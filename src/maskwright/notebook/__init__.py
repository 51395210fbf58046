"""Results in notebooks: pages that work in light and dark, data frames, and a bar in the cell while something runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from maskwright.report.html import tag
from maskwright.runtime.events import Event

OnEvent = Callable[[Event], None]


@contextmanager
def shown_progress(on_event: OnEvent | None) -> Iterator[OnEvent | None]:
    """Who is told of events: the caller's function; in a notebook, where there is none, a bar in the cell.

    The bar is taken away however the work ends, also when it is refused or interrupted.
    """
    if on_event is not None or not _in_notebook():
        yield on_event
        return
    bar = NotebookBar()
    try:
        yield bar
    finally:
        bar.close()


def _in_notebook() -> bool:
    """Does a kernel run this? (IPython in a terminal shows no HTML.)"""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class NotebookBar:
    """One line with a bar, drawn anew at every event and taken away at the end."""

    def __init__(self) -> None:
        self._step = ""
        self._handle: Any = None

    def __call__(self, event: Event) -> None:
        """Show an event."""
        if event.kind == "note":
            return
        if event.kind == "step":
            self._step = event.text
        if event.kind == "done":
            self.close()
        else:
            self._show(self.html(event.share, event.text if event.share is not None else ""))

    def close(self) -> None:
        """Take the bar away, if one was drawn."""
        if self._handle is not None:
            self._show("")

    def html(self, share: float | None, words: str) -> str:
        """The line: the step, how much of it is done, and what is said of the time."""
        bar = tag("progress", max=1, **({} if share is None else {"value": round(share, 3)}))
        text = " · ".join(filter(None, (self._step, "" if share is None else f"{share:.0%}", words)))
        return tag("div", bar, f" {text}", style="font: 13px system-ui, sans-serif")

    def _show(self, html: str) -> None:
        shown = import_module("IPython.display")  # there, where a kernel runs this
        if self._handle is None:
            self._handle = shown.display(shown.HTML(html), display_id=True)
        else:
            self._handle.update(shown.HTML(html))
