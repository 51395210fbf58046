"""The base of everything a user can set: frozen, strict, and explained by its own fields.

A model, a method, an attack, a section of the policy: each is a class with typed fields. Validation, the
policy schema, the CLI's lists and the docs index all derive from those fields and the docstring.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from maskwright.domain.exact import short_repr
from maskwright.domain.shown import public_names
from maskwright.errors import MaskwrightError, PolicyError

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)  # pydantic has no public name for it

_LITERAL = re.compile(r"'([^']+)'")
TAG = "\x1f"  # begins the name of a choice in a tagged union: a step of pydantic's path that no user wrote


class ExplainedType(ModelMetaclass):
    """Settings that are written in Python are refused in one line, as those of a policy file are."""

    def __call__(cls: type[BaseModel], *values: Any, **settings: Any) -> Any:  # type: ignore[misc]  # noqa: N805
        """Settings by name; those without a default also in their order: `KAnonymity(5)`."""
        if values:
            names = [name for name, field in cls.model_fields.items() if field.is_required()]
            if len(values) > len(names):
                known = f"takes {', '.join(names)}" if names else "takes none"
                raise TypeError(f"{cls.__name__} {known} without a name; write the others as name=value")
            settings |= dict(zip(names, values, strict=False))
        _check_texts(settings, cls.__name__, PolicyError)
        try:
            return ModelMetaclass.__call__(cls, **settings)
        except ValidationError as problem:
            refused = explained_refusal(cls, problem, cls.__name__, PolicyError)
        raise refused


class Settings(BaseModel, metaclass=ExplainedType):
    model_config = ConfigDict(
        frozen=True,
        defer_build=True,  # a run uses a few of the classes; building validators for all of them costs more
        extra="forbid",
        coerce_numbers_to_str=True,
        populate_by_name=True,
        protected_namespaces=(),
    )

    def __dir__(self) -> list[str]:
        return public_names(self)

    def options(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as plain values that a policy file can hold."""
        return self.model_dump(mode="json", exclude_defaults=True, by_alias=True)


class Registered(Settings):
    """A thing that a policy names: `name` is what the policy, the CLI and the report call it."""

    name: ClassVar[str]

    @classmethod
    def summary_line(cls) -> str:
        """The first line of the docstring of the class."""
        return first_line(cls)


def likely_settings(cls: type[Settings]) -> dict[str, str]:
    """What a newcomer could begin with: something for every setting without a default."""
    guessed = {}
    for name, field in cls.model_fields.items():
        if field.is_required():
            whole = field.annotation is int
            guessed[name] = "2" if whole else "1/2"
    return guessed


def docstring_of(thing: Any) -> str:
    """The docstring of a class or function; where Python was told to forget it (-OO), as the source has it."""
    text = thing.__dict__.get("__doc__") if isinstance(thing, type) else thing.__doc__
    if text is None:
        try:
            source = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
        except (OSError, TypeError):  # built in, or installed without its source
            return ""
        return ast.get_docstring(source) or ""  # type: ignore[arg-type]
    return inspect.cleandoc(text)


def first_line(thing: Any) -> str:
    """What a class or function is, in one line."""
    return docstring_of(thing).partition("\n")[0]


S = TypeVar("S", bound=Settings)
R = TypeVar("R", bound=Registered)


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """'; did you mean …?', or the choices when none is near."""
    names = sorted(choices)
    close = difflib.get_close_matches(word, names, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known: " + ", ".join(names) if len(names) <= 30 else "see the documentation"


NAME = 100  # characters of a name in a message


def parse_settings(
    cls: type[S], values: Mapping[str, Any], where: str, error: type[MaskwrightError] = PolicyError
) -> S:
    """Validate `values` into `cls`; the error is one line that says where, what, and what would work."""
    if not isinstance(values, Mapping):
        raise error(f"{where}: expected a mapping of settings, got {short_repr(values)}")
    _check_texts(values, where, error)
    try:
        return cls.model_validate(dict(values))
    except ValidationError as problem:
        refused = explained_refusal(cls, problem, where, error)
    except RecursionError:
        refused = error(f"{where}: nested too deeply to be read")
    # raised here, and not while the other is handled: pydantic's errors hold what Python then could never free
    raise refused


def _check_texts(values: Any, where: str, error: type[MaskwrightError]) -> None:
    """Refuse a text, or a key, with half a character (a lone surrogate), wherever it is nested: no file can hold it."""
    waiting, seen = [(where, values)], set[int]()
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                raise error(f"{place}: half a character (a lone surrogate), which no file can hold") from None
        elif isinstance(value, (Mapping, list, tuple)) and id(value) not in seen:
            seen.add(id(value))  # what holds itself is refused later
            if isinstance(value, Mapping):
                waiting += [(place, key) for key in value]
                waiting += [(place + (_step(k) if isinstance(k, str) else ""), v) for k, v in value.items()]
            else:
                waiting += [(place + _step(number), item) for number, item in enumerate(value)]


def explained_refusal(
    cls: type[BaseModel], problem: ValidationError, where: str, error: type[MaskwrightError]
) -> MaskwrightError:
    """What pydantic found as one line; the other lines are details."""
    # a misspelt key also makes a required one missing: the misspelling is the better explanation
    items = sorted(problem.errors(), key=lambda item: item["type"] != "extra_forbidden")
    lines = [_explain(cls, item, where) for item in items]
    return error(lines[0], "\n".join(lines[1:]))


def build_registered(
    registry: Mapping[str, type[R]], kind: str, name: str, values: Mapping[str, Any], where: str
) -> R:
    """Make the registered `name` from its parameters."""
    if name not in registry:
        raise PolicyError(f"{where}: there is no {kind} {name!r}; {did_you_mean(str(name), registry)}")
    return parse_settings(registry[name], values, where)


def _explain(cls: type[BaseModel], item: Any, where: str) -> str:
    """One line for one pydantic error."""
    path = where + "".join(_step(p) for p in item["loc"])
    kind = item["type"]
    if kind == "extra_forbidden":
        key = str(item["loc"][-1])
        fields = _fields_at(cls, item["loc"][:-1])
        parent = where + "".join(_step(p) for p in item["loc"][:-1])
        return f"{parent}: unknown key {short_repr(key)}; {did_you_mean(key, fields)}"
    if kind == "missing":
        return f"{path}: this setting is required"
    message = str(item["msg"])
    for prefix in ("Value error, ", "Input should be a valid ", "Input should be "):
        if message.startswith(prefix):
            message = message.removeprefix(prefix)
            if prefix == "Value error, ":
                return f"{path}: {message}"
            written = item["input"]
            named = kind == "literal_error" and isinstance(written, str)
            close = did_you_mean(written, _LITERAL.findall(message)) if named else ""
            meant = f"; {close}" if close.startswith("did you mean") else ""
            message = {"tuple_type": "a list", "list_type": "a list"}.get(kind, message)
            if kind == "model_type":
                keys = ", ".join(f"{key}: …" for key in _fields_at(cls, item["loc"]))
                message = f"settings, {{{keys}}}"
            return f"{path}: {short_repr(written)} is not allowed; expected {message}{meant}"
    return f"{path}: {short_repr(item['input'])}: {message}"


def _step(part: int | str) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    if part.startswith(TAG):
        return ""
    return f".{part}" if len(part) <= NAME else f".{part[:NAME]}…"


def _fields_at(cls: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The keys that are allowed at a location inside `cls` (for 'did you mean')."""
    current: type[BaseModel] = cls
    choices = [cls]
    for step in location:
        if isinstance(step, str) and step in current.model_fields:
            models = _models(current.model_fields[step].annotation)
        elif isinstance(step, str) and step.startswith(TAG):
            models = [m for m in choices if m.__name__ == step.removeprefix(TAG)]
        else:
            continue
        choices = models
        current = models[0] if models else current
    return [f.alias or n for n, f in current.model_fields.items()]


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The settings classes that occur in an annotation, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]
