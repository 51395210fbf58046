"""Statements about people: the small language in which an adversary's knowledge is written down.

    Ed is person(age=34, zip=13053)              a name for somebody with these quasi-identifiers
    not Ed.disease = mumps                       a formula: = != in {…}, and, or, not, implies (->), brackets
    Hannah.disease = flu implies Charlie.disease = flu
    person(age=29).disease in {flu, "lung cancer"}
    impossible(sex=male, disease="ovarian cancer")   nobody with the first can have the last

One statement per line, or several with `;` between; all of them are true. `#` begins a comment. A value that holds
spaces or signs is quoted; `missing` is a missing value. Nothing is ever evaluated as Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from maskwright.errors import UsageError

Value = str | None
Conditions = tuple[tuple[str, Value], ...]  # column, value
KEYWORDS = {"and", "or", "not", "implies", "is", "in", "person", "impossible", "missing"}
DEEP = 100  # brackets and negations inside each other
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|\#[^\n]*)|(?P<end>[;\n])|(?P<text>"[^"\n]*"|'[^'\n]*')|(?P<sign>->|!=|[(),.={}])"""
    r"""|(?P<word>(?:[^\s(),.={};"'\#!-]|-(?!>)|(?<=\d)\.(?=\d))+)"""
)


@dataclass(frozen=True)
class Who:
    """Somebody: by a name that was declared, or by quasi-identifiers."""

    name: str | None
    conditions: Conditions = ()

    def __str__(self) -> str:
        return self.name or f"person({', '.join(f'{c}={v}' for c, v in self.conditions)})"


@dataclass(frozen=True)
class Is:
    """This person has one of these values in this column."""

    who: Who
    column: str
    values: tuple[Value, ...]

    def atoms(self) -> Iterator[Is]:
        """The formula itself: it is an atom."""
        yield self

    def true(self, values: Mapping[tuple[Who, str], Sequence[Value]]) -> bool:
        """Whether one of the person's values, a row each, is one of these."""
        return any(value in self.values for value in values[self.who, self.column])


@dataclass(frozen=True)
class Formula:
    """`not`, `and`, `or` or `implies` of other formulas."""

    word: str
    parts: tuple[Formula | Is, ...]

    def atoms(self) -> Iterator[Is]:
        """The atoms of the formula, from left to right."""
        for part in self.parts:
            yield from part.atoms()

    def true(self, values: Mapping[tuple[Who, str], Sequence[Value]]) -> bool:
        """Whether the formula holds when people have these values."""
        if self.word == "not":
            return not self.parts[0].true(values)
        if self.word == "implies":
            return not self.parts[0].true(values) or self.parts[1].true(values)
        found = (part.true(values) for part in self.parts)
        return all(found) if self.word == "and" else any(found)


@dataclass(frozen=True)
class Statements:
    """What was said: names of people, formulas (with their text), and combinations that cannot be."""

    names: dict[str, Conditions] = field(default_factory=dict)
    formulas: list[tuple[str, Formula | Is]] = field(default_factory=list)
    impossible: list[Conditions] = field(default_factory=list)


@dataclass(frozen=True)
class _Token:
    kind: str  # word, text, sign, end
    text: str
    line: int
    column: int
    place: tuple[int, int]  # where it begins and ends in the text


def parse_statements(text: str) -> Statements:
    """Read statements; an error names line and column and what was expected there."""
    return _Reader(text).statements()


class _Reader:
    """A parser by recursive descent: one method per rule of the language."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self.at = self.depth = 0

    @property
    def _token(self) -> _Token:
        return self.tokens[self.at]

    def _fail(self, expected: str) -> UsageError:
        token = self._token
        found = "the end of the statement" if token.kind == "end" else repr(token.text)
        return UsageError(
            f"knowledge, line {token.line}, column {token.column}: expected {expected}, found {found}"
        )

    def _next(self) -> _Token:
        token = self._token
        self.at += 1
        return token

    def _accept(self, *texts: str) -> bool:
        if self._token.kind in ("word", "sign") and self._token.text in texts:
            self.at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._fail(repr(text))

    def statements(self) -> Statements:
        """Everything that the text says."""
        found = Statements()
        while True:
            while self._token.kind == "end" and self._token.text:
                self.at += 1
            if self._token.kind == "end":
                return found
            self._statement(found)
            if self._token.kind != "end":
                raise self._fail("'and', 'or', 'implies', ';' or a new line (quote a value with spaces)")

    def _statement(self, found: Statements) -> None:
        first = self._token
        if self._accept("impossible"):
            found.impossible.append(self._conditions())
            return
        following = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else self._token
        if first.kind == "word" and first.text not in KEYWORDS and following.text == "is":
            self.at += 2
            if first.text in found.names:
                raise UsageError(f"knowledge, line {first.line}: {first.text!r} is declared twice")
            self._expect("person")
            found.names[first.text] = self._conditions()
            return
        begin = self.at
        formula = self._implies()
        found.formulas.append((self._source(begin), formula))
        for atom in formula.atoms():
            if atom.who.name is not None and atom.who.name not in found.names:
                raise UsageError(
                    f"knowledge, line {first.line}: who is {atom.who.name!r}? Say it first: "
                    f"{atom.who.name} is person(age=34, zip=13053)"
                )

    def _source(self, begin: int) -> str:
        """The words of a statement."""
        return self.text[self.tokens[begin].place[0] : self.tokens[self.at - 1].place[1]]

    def _implies(self) -> Formula | Is:
        left = self._either()
        if not self._accept("implies", "->"):
            return left
        self.depth += 1
        right = self._implies() if self.depth <= DEEP else self._negated()
        self.depth -= 1
        return Formula("implies", (left, right))

    def _either(self) -> Formula | Is:
        parts = [self._both()]
        while self._accept("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Formula("or", tuple(parts))

    def _both(self) -> Formula | Is:
        parts = [self._negated()]
        while self._accept("and"):
            parts.append(self._negated())
        return parts[0] if len(parts) == 1 else Formula("and", tuple(parts))

    def _negated(self) -> Formula | Is:
        self.depth += 1
        if self.depth > DEEP:
            raise self._fail(f"at most {DEEP} brackets and negations inside each other")
        if self._accept("not"):
            found: Formula | Is = Formula("not", (self._negated(),))
        elif self._accept("("):
            found = self._implies()
            self._expect(")")
        else:
            found = self._atom()
        self.depth -= 1
        return found

    def _atom(self) -> Formula | Is:
        who = self._who()
        self._expect(".")
        column = self._name("the name of a sensitive column")
        if self._accept("="):
            return Is(who, column, (self._value(),))
        if self._accept("!="):
            return Formula("not", (Is(who, column, (self._value(),)),))
        if self._accept("in"):
            self._expect("{")
            values = [self._value()]
            while self._accept(","):
                values.append(self._value())
            self._expect("}")
            return Is(who, column, tuple(values))
        raise self._fail("'=', '!=' or 'in'")

    def _who(self) -> Who:
        if self._accept("person"):
            return Who(None, tuple(sorted(self._conditions(), key=lambda c: c[0])))
        return Who(self._name("a person: a name that was declared, or person(age=34, …)"))

    def _conditions(self) -> Conditions:
        self._expect("(")
        found: dict[str, Value] = {}
        while True:
            column = self._name("the name of a column")
            if column in found:
                raise self._fail(f"another column: {column!r} was given already")
            self._expect("=")
            found[column] = self._value()
            if self._accept(")"):
                return tuple(found.items())
            if not self._accept(","):
                raise self._fail("',' or ')'; a value with spaces or signs is written in quotes")

    def _name(self, expected: str) -> str:
        if self._token.kind == "text" or (self._token.kind == "word" and self._token.text not in KEYWORDS):
            return self._next().text
        raise self._fail(expected)

    def _value(self) -> Value:
        if self._token.kind == "word" and self._token.text == "missing":
            self.at += 1
            return None
        if self._token.kind == "text" or (self._token.kind == "word" and self._token.text not in KEYWORDS):
            return self._next().text
        raise self._fail("a value; one with spaces or signs is written in quotes")


def _tokens(text: str) -> Iterator[_Token]:
    at, line, begin = 0, 1, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise UsageError(
                f"knowledge, line {line}, column {at - begin + 1}: {text[at]!r} has no meaning here; "
                "a value with such signs is written in quotes"
            )
        kind, found = str(match.lastgroup), match.group()
        if kind == "text":
            yield _Token("text", found[1:-1], line, at - begin + 1, match.span())
        elif kind != "space":
            yield _Token(kind, found, line, at - begin + 1, match.span())
        at = match.end()
        if found == "\n":
            line, begin = line + 1, at
    yield _Token("end", "", line, at - begin + 1, (at, at))


def people_of(formula: Formula | Is) -> tuple[Who, ...]:
    """Whom a formula is about."""
    return tuple(dict.fromkeys(atom.who for atom in formula.atoms()))


def columns_of(statements: Statements) -> list[str]:
    """The sensitive columns that formulas speak of."""
    return list(dict.fromkeys(atom.column for _, f in statements.formulas for atom in f.atoms()))
