"""Redaction of free text: the spans that a spaCy pipeline or the patterns of direct identifiers find become [LABEL].

Needs spaCy (https://spacy.io): pip install 'maskwright[redact]', and a pipeline of the language, which is not fetched
here. No program finds everything: whatever comes out of this is labelled *not verified*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import Field, field_validator

from maskwright.domain.settings import Settings
from maskwright.errors import InputError, UsageError

REMEMBERED = 50_000  # texts whose redaction is kept, because each is asked for twice: to count, and to write

Span = tuple[int, int, str]  # from, to, label


class Redaction(Settings):
    """What is taken out of free text, and by which model. *Not verified*: what a model overlooks stays."""

    model: str = Field(
        min_length=1,
        description="a spaCy pipeline: the name of an installed package, or the path of a folder",
    )
    keep: tuple[str, ...] = Field(
        (),
        description="labels of the model that stay, such as CARDINAL; everything else it finds is taken out",
    )

    @field_validator("keep", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


@lru_cache(maxsize=16)
def text_redactor(model: str, keep: Sequence[str] = ()) -> Callable[[str], str | None]:
    """The function that redacts a text with a spaCy pipeline; it gives None for a text that the pipeline fails on."""
    from maskwright.identifiers.detection import identifiers_inside  # for the few policies that redact

    pipeline, lock = _pipeline(model, keep), Lock()

    @lru_cache(maxsize=REMEMBERED)
    def _redacted(text: str) -> str | None:
        try:
            with lock:  # engines call it from several threads
                entities = pipeline(text).ents
        except Exception:  # a text that nothing could be looked for in is not let through
            return None
        named = [(e.start_char, e.end_char, e.label_) for e in entities if e.label_ not in keep]
        return without_spans(text, [*named, *identifiers_inside(text)])

    return _redacted


def without_spans(text: str, spans: Iterable[Span]) -> str:
    """A text with the label of each span in its place; spans that overlap become one, with the label of the first."""
    parts, end = list[str](), 0
    for start, stop, label in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= end:
            parts += [text[end:start], f"[{label.upper()}]"]
        end = max(end, stop)
    return "".join([*parts, text[end:]])


def _pipeline(model: str, keep: Sequence[str]) -> Any:
    """The spaCy pipeline of this name; refuses one that recognises nothing."""
    try:
        import spacy
    except ImportError:
        raise UsageError("redact needs spaCy; install it: pip install 'maskwright[redact]'") from None
    if not (spacy.util.is_package(model) or (Path(model).is_absolute() and Path(model).is_dir())):
        raise UsageError(
            f"redact: {model!r} is no installed spaCy pipeline; install it (python -m spacy download {model}), or give "
            "the whole path of its folder"
        )
    try:
        pipeline = spacy.load(model)
    except Exception as problem:
        raise InputError(
            f"redact: {model!r} cannot be loaded as a spaCy pipeline ({type(problem).__name__})"
        ) from None
    labels = {label for names in pipeline.pipe_labels.values() for label in names}
    if not {"ner", "entity_ruler", "span_ruler"} & set(pipeline.pipe_names):
        raise InputError(f"redact: {model!r} recognises no names; take a pipeline with `ner`")
    if strangers := sorted(set(keep) - labels):
        raise InputError(
            f"redact.keep: {model!r} has no label {strangers[0]!r}; it has {', '.join(sorted(labels)) or 'none'}"
        )
    return pipeline
