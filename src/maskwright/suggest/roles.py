"""Guess the role of a column from its name and its values; every guess has a reason in words.

In doubt the guess is the careful one: what looks unique is dropped, what is unknown counts as something an
attacker could know. Reasons never quote a value.
"""

from __future__ import annotations

from dataclasses import dataclass

from maskwright.policy.policy import Role
from maskwright.suggest.profile import Facts
from maskwright.suggest.topics import (
    Topic,
    identifier_topic,
    is_numbering,
    name_parts,
    name_topic,
)

YES_OR_NO = 3  # a telephone of so few values says whether there is one
FIRST_YEAR, LAST_YEAR = 1850, 2100
MANY_ROWS = 50  # that share each number of a thing: it points to no record
NUMERIC_TOPICS = {"age", "birth-year", "year", "body", "household", "money", "result"}


@dataclass(frozen=True)
class Guess:
    """A role, what the column is about, and why."""

    role: Role
    topic: str | None
    reason: str
    notes: tuple[str, ...] = ()


def guess_role(facts: Facts) -> Guess:
    """The role of a column; the first rule that has something to say decides."""
    for rule in (_empty, _identifying, _by_name, _by_pattern, _numbering, _by_count):
        found = rule(facts)
        if found is not None:
            return found
    raise AssertionError("the last rule always answers")


def _empty(facts: Facts) -> Guess | None:
    if facts.present:
        return None
    return Guess("identifier", None, "no row has a value: nothing to publish, so it is dropped")


def looks_identifying(facts: Facts) -> bool:
    """Whether a column must never be published, by its name or by what its values look like."""
    return _identifying(facts) is not None


def _identifying(facts: Facts) -> Guess | None:
    """What must never be published, whatever else the column may be."""
    found = facts.identifier
    if found is not None and found.kind.key == "free-text":
        return Guess(
            "identifier", "free-text", "free text can say anything about anybody, names included: dropped"
        )
    if found is not None and not (found.kind.key == "person-name" and _named_for_things(facts)):
        return Guess("identifier", found.kind.key, f"{found.sentence()}: dropped")
    if facts.looks_like == "keys or hashes":
        return Guess("identifier", facts.looks_like, "the values look like keys or hashes: dropped")
    topic = identifier_topic(facts.name)
    if topic is not None and not (topic.key in ("phone", "email") and facts.distinct <= YES_OR_NO):
        return Guess("identifier", topic.key, f"its name suggests {topic.what}: dropped")
    topic = name_topic(facts.name, "free text")
    if topic is not None and facts.distinct > 20:
        return Guess(
            "identifier",
            topic.key,
            "its name suggests free text, which can say anything about anybody: dropped",
        )
    return None


def _named_for_things(facts: Facts) -> bool:
    """Counties are called after people, and so are many streets and diseases: the column's name says which it is."""
    topic = name_topic(facts.name)
    return topic is not None and topic.key in (
        "place",
        "state",
        "country",
        "health",
        "treatment",
        "occupation",
    )


def _by_name(facts: Facts) -> Guess | None:
    dates = looks_like_dates(facts)
    topic = name_topic(facts.name)
    if dates:
        if topic is not None and topic.key == "birth-date":
            return _date(
                "birth-date", "a date of birth: together with sex and postcode it singles most people out"
            )
        event = f" (its name suggests {topic.what})" if topic is not None and topic.key != "date" else ""
        return _date("date", f"a date{event}: others may know when something happened to somebody")
    if topic is None:
        return None
    if topic.key == "year" and not is_years(facts):
        return None  # "1_year_ago", "weeks_in_year"
    if topic.key == "date":
        return None  # "visit" or "death" with values that are no dates: what they look like decides
    if topic.role == "sensitive":
        return _sensitive(facts, topic)
    if topic.key == "postcode":
        return Guess(
            "quasi-identifier",
            "postcode",
            "its name suggests a postcode: where somebody lives is easy to find out",
        )
    if topic.key == "birth-date" and is_years(facts):
        return Guess(
            "quasi-identifier", "birth-year", "its name suggests a date of birth, and the values are years"
        )
    return Guess(
        "quasi-identifier",
        topic.key,
        f"its name suggests {topic.what}, which others can know",
        _unread(facts, topic),
    )


def _date(topic: str, reason: str) -> Guess:
    return Guess("quasi-identifier", topic, reason)


def _sensitive(facts: Facts, topic: Topic) -> Guess:
    notes: tuple[str, ...] = ()
    if facts.near_unique:
        notes = (
            "nearly every row has a value of its own, published as it is: somebody who knows one finds the row;"
            " round it before, or make it a quasi-identifier or identifier",
        )
    return Guess(
        "sensitive",
        topic.key,
        f"its name suggests {topic.what}: what nobody should learn about a person",
        notes,
    )


def _unread(facts: Facts, topic: Topic) -> tuple[str, ...]:
    """A number by its name, of which some values are no numbers."""
    if topic.key not in NUMERIC_TOPICS or facts.kind in ("integer", "number") or facts.numbers is not None:
        return ()
    numbers = sum(v.lstrip("+-").replace(".", "", 1).isdigit() for v in facts.values)
    if numbers * 2 < len(facts.values):
        return ()
    odd = len(facts.values) - numbers
    return (
        f"{odd} of its values {'is' if odd == 1 else 'are'} no number: add them to missing.tokens if they mean "
        "missing, and intervals become possible",
    )


def _by_pattern(facts: Facts) -> Guess | None:
    if facts.looks_like == "ICD-10 codes" and not facts.near_unique and _several_chapters(facts):
        return Guess("sensitive", "health", "the values look like ICD-10 codes, i.e. diagnoses")
    if facts.looks_like in ("UK postcodes", "ZIP codes"):
        return Guess("quasi-identifier", "postcode", f"the values look like {facts.looks_like}")
    if is_numbering(facts.name) or facts.distinct < 3:
        return None
    if is_years(facts):
        return Guess("quasi-identifier", "year", "whole numbers that look like years")
    if _digits_of_one_length(facts) and not facts.near_unique:
        return Guess("quasi-identifier", "postcode", "digits of one length, as postcodes have")
    return None


def _numbering(facts: Facts) -> Guess | None:
    shared = facts.complete and facts.distinct * MANY_ROWS <= facts.rows
    if is_numbering(facts.name) and facts.distinct > 50 and shared:
        return Guess(
            "quasi-identifier", "code",
            "its name suggests the number of something that many rows share: others may know what somebody had "
            "dealings with",
        )  # fmt: skip
    if is_numbering(facts.name) and (facts.near_unique or facts.distinct > 50):
        return Guess(
            "identifier", "number", "its name suggests a number given to each record or thing: dropped"
        )
    return None


def _by_count(facts: Facts) -> Guess:
    if facts.distinct == 1 and not facts.missing:
        return Guess("insensitive", None, "the same value in every row: it tells nobody apart")
    numeric = facts.numbers is not None
    if facts.near_unique:
        if numeric:
            reason = (
                "nearly every row has a number of its own, which singles people out: dropped; if it is needed, "
                "make it a quasi-identifier with {intervals: [...]} or sensitive"
            )
        else:
            reason = "nearly every row has a value of its own, which singles people out: dropped"
        return Guess("identifier", None, reason)
    careful = "not known to be harmless, so it counts as something an attacker could know"
    if numeric or facts.distinct <= 50:
        return Guess("quasi-identifier", None, careful)
    note = "many values and no hierarchy but full suppression: give it a tree or a file, or drop it"
    return Guess("quasi-identifier", None, careful, (note,))


def _several_chapters(facts: Facts) -> bool:
    """Diagnoses are of several chapters, or are written with a point; codes of one letter (A11, A12) may not be."""
    pointed = sum("." in v for v in facts.values)
    return len({v[:1] for v in facts.values}) >= 3 or pointed * 5 >= len(facts.values)


def looks_like_dates(facts: Facts) -> bool:
    """Is every value a date?"""
    return facts.kind in ("date", "timestamp") or facts.looks_like == "dates"


def is_years(facts: Facts) -> bool:
    """Is every value a year?"""
    numbers = facts.numbers
    if not numbers or (facts.distinct < 3 and not set(name_parts(facts.name)) & {"year", "jahr"}):
        return False
    return all(FIRST_YEAR <= n <= LAST_YEAR and n == int(n) for n in numbers)


def _digits_of_one_length(facts: Facts) -> bool:
    lengths = {len(v) for v in facts.values}
    return (
        len(lengths) == 1
        and 4 <= lengths.pop() <= 6
        and facts.distinct > 10
        and all(v.isascii() and v.isdigit() for v in facts.values)
    )
