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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from maskwright.errors import UsageError

Value = str | None
Conditions = tuple[tuple[str, Value], ...]  # column, value
KEYWORDS = {"and", "or", "not", "implies", "is", "in", "person", "impossible", "missing"}


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

    def people(self) -> Iterator[Who]:
        yield self.who

    def atoms(self) -> Iterator[Is]:
        yield self

    def true(self, values: Mapping[tuple[Who, str], Value]) -> bool:
        return values[self.who, self.column] in self.values


@dataclass(frozen=True)
class Formula:
    """`not`, `and`, `or` or `implies` of other formulas."""

    word: str
    parts: tuple[Formula | Is, ...]

    def atoms(self) -> Iterator[Is]:
        for part in self.parts:
            yield from part.atoms()

    def true(self, values: Mapping[tuple[Who, str], Value]) -> bool:
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


DEEP = 100  # brackets and negations inside each other
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|\#[^\n]*)|(?P<end>[;\n])|(?P<text>"[^"\n]*"|'[^'\n]*')|(?P<sign>->|!=|[(),.={}])"""
    r"""|(?P<word>(?:[^\s(),.={};"'\#!-]|-(?!>)|(?<=\d)\.(?=\d))+)"""
)


def parse_statements(text: str) -> Statements:
    """Read statements; an error names line and column and what was expected there."""
    return _Reader(text).statements()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self.at = self.depth = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def fail(self, expected: str) -> UsageError:
        token = self.token
        found = "the end of the statement" if token.kind == "end" else repr(token.text)
        return UsageError(
            f"knowledge, line {token.line}, column {token.column}: expected {expected}, found {found}"
        )

    def next(self) -> _Token:
        token = self.token
        self.at += 1
        return token

    def accept(self, *texts: str) -> bool:
        if self.token.kind in ("word", "sign") and self.token.text in texts:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.fail(repr(text))

    def statements(self) -> Statements:
        found = Statements()
        while True:
            while self.token.kind == "end" and self.token.text:
                self.at += 1
            if self.token.kind == "end":
                return found
            self.statement(found)
            if self.token.kind != "end":
                raise self.fail("'and', 'or', 'implies', ';' or a new line (quote a value with spaces)")

    def statement(self, found: Statements) -> None:
        first = self.token
        if self.accept("impossible"):
            found.impossible.append(self.conditions())
            return
        following = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else self.token
        if first.kind == "word" and first.text not in KEYWORDS and following.text == "is":
            self.at += 2
            if first.text in found.names:
                raise UsageError(f"knowledge, line {first.line}: {first.text!r} is declared twice")
            self.expect("person")
            found.names[first.text] = self.conditions()
            return
        begin = self.at
        formula = self.implies()
        found.formulas.append((self.source(begin), formula))
        for atom in formula.atoms():
            if atom.who.name is not None and atom.who.name not in found.names:
                raise UsageError(
                    f"knowledge, line {first.line}: who is {atom.who.name!r}? Say it first: "
                    f"{atom.who.name} is person(age=34, zip=13053)"
                )

    def source(self, begin: int) -> str:
        """The words of a statement."""
        return self.text[self.tokens[begin].place[0] : self.tokens[self.at - 1].place[1]]

    def implies(self) -> Formula | Is:
        left = self.either()
        if not self.accept("implies", "->"):
            return left
        self.depth += 1
        right = self.implies() if self.depth <= DEEP else self.negated()
        self.depth -= 1
        return Formula("implies", (left, right))

    def either(self) -> Formula | Is:
        parts = [self.both()]
        while self.accept("or"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Formula("or", tuple(parts))

    def both(self) -> Formula | Is:
        parts = [self.negated()]
        while self.accept("and"):
            parts.append(self.negated())
        return parts[0] if len(parts) == 1 else Formula("and", tuple(parts))

    def negated(self) -> Formula | Is:
        self.depth += 1
        if self.depth > DEEP:
            raise self.fail(f"at most {DEEP} brackets and negations inside each other")
        if self.accept("not"):
            found: Formula | Is = Formula("not", (self.negated(),))
        elif self.accept("("):
            found = self.implies()
            self.expect(")")
        else:
            found = self.atom()
        self.depth -= 1
        return found

    def atom(self) -> Formula | Is:
        who = self.who()
        self.expect(".")
        column = self.name("the name of a sensitive column")
        if self.accept("="):
            return Is(who, column, (self.value(),))
        if self.accept("!="):
            return Formula("not", (Is(who, column, (self.value(),)),))
        if self.accept("in"):
            self.expect("{")
            values = [self.value()]
            while self.accept(","):
                values.append(self.value())
            self.expect("}")
            return Is(who, column, tuple(values))
        raise self.fail("'=', '!=' or 'in'")

    def who(self) -> Who:
        if self.accept("person"):
            return Who(None, tuple(sorted(self.conditions(), key=lambda c: c[0])))
        return Who(self.name("a person: a name that was declared, or person(age=34, …)"))

    def conditions(self) -> Conditions:
        self.expect("(")
        found: dict[str, Value] = {}
        while True:
            column = self.name("the name of a column")
            if column in found:
                raise self.fail(f"another column: {column!r} was given already")
            self.expect("=")
            found[column] = self.value()
            if self.accept(")"):
                return tuple(found.items())
            if not self.accept(","):
                raise self.fail("',' or ')'; a value with spaces or signs is written in quotes")

    def name(self, expected: str) -> str:
        if self.token.kind == "text" or (self.token.kind == "word" and self.token.text not in KEYWORDS):
            return self.next().text
        raise self.fail(expected)

    def value(self) -> Value:
        if self.token.kind == "word" and self.token.text == "missing":
            self.at += 1
            return None
        if self.token.kind == "text" or (self.token.kind == "word" and self.token.text not in KEYWORDS):
            return self.next().text
        raise self.fail("a value; one with spaces or signs is written in quotes")


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
