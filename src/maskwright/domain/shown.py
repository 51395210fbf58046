"""Results that show themselves: in a notebook as a page of its own, elsewhere in a line, and as a data frame."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

FrameKind = Literal["pandas", "polars"]


class Shown:
    """What a notebook and an interactive session ask of a result.

    The pages are made in `maskwright.notebook`, above everything that can be shown, and imported when somebody looks.
    """

    __slots__ = ()

    def headline(self) -> str:
        """The result in a few words, for `repr`."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def _repr_html_(self) -> str:
        page: str = import_module("maskwright.notebook.result_pages").notebook_page(self)
        return page

    def to_frame(self, what: str | None = None, kind: FrameKind | None = None) -> Any:
        """Figures as a pandas or polars data frame: numbers as floats, with the exact fraction beside them.

        Args:
            what: which figures, where there are several kinds; an unknown name is answered with the known ones.
            kind: "pandas" or "polars"; by default the one that is installed, pandas first.
        """
        return import_module("maskwright.notebook.result_frames").frame_of(self, what, kind)

    def __dir__(self) -> list[str]:
        return public_names(self)


def public_names(thing: object) -> list[str]:
    """What completion offers: fields, properties and methods of ours, nothing inherited from a library."""
    ours = [
        c
        for c in type(thing).__mro__
        if c.__module__.partition(".")[0] in (__name__.partition(".")[0], "__main__")
    ]
    names = {name for cls in ours for name in (*vars(cls), *getattr(cls, "__annotations__", {}))}
    library = {name for cls in type(thing).__mro__ if cls not in ours for name in vars(cls)}
    own = {name for cls in ours for name in getattr(cls, "__annotations__", {})}
    return sorted(
        n for n in names if not n.startswith("_") and (n not in library or n in own) and n not in HIDDEN
    )


HIDDEN = frozenset({"model_config"})
