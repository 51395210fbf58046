"""Direct identifiers by content: checksums first, then shapes, person names and free text; names of columns come last.

A column is flagged when at least 95 % of up to 1,000 of its distinct values pass a test that a random value would pass
with at most 1/10. What that means:

* a **checksum** is asked again after one character of each value was changed at random: a number that still passes more
  often than one time in ten has no checksum worth the name, and the format does not count;
* a **shape** is made of signs that no number and no code has by chance (`@`, `://`, a street and a house number);
* **person names** are words of which most are in a list of common names, as no list of places or occupations is.

No value is ever part of an answer.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import import_module
from importlib.resources import files
from unicodedata import combining, normalize

VALUES = 1000  # at most so many distinct values are looked at
PASSING = Fraction(95, 100)
BY_CHANCE = Fraction(1, 10)
ALTERED = 200  # values with one character changed
LEAST_CHECKED = 6  # with fewer numbers, a checksum can be right by chance: 10⁻⁶ for each format

Test = Callable[[str], bool]


def _word_list(text: str) -> list[str]:
    return text.split()


@dataclass(frozen=True)
class IdentifierKind:
    """One kind of direct identifier.

    Attributes:
        key: its short name.
        what: the values in words, in the plural.
        hipaa: the letter of the HIPAA Safe Harbor list (45 CFR 164.514(b)(2)(i)) that it belongs to.
    """

    key: str
    what: str
    hipaa: str


KINDS: dict[str, IdentifierKind] = {
    kind.key: kind
    for kind in (
        IdentifierKind("person-name", "names of people", "A"),
        IdentifierKind("street-address", "street addresses", "B"),
        IdentifierKind("coordinates", "positions on the map", "B"),
        IdentifierKind("phone", "telephone numbers", "D"),
        IdentifierKind("email", "e-mail addresses", "F"),
        IdentifierKind("social-security", "US social security numbers", "G"),
        IdentifierKind("national-number", "national identity numbers", "G"),
        IdentifierKind("tax-number", "tax numbers of people", "G"),
        IdentifierKind("record-number", "numbers of patients or members", "H"),
        IdentifierKind("health-number", "health insurance numbers", "I"),
        IdentifierKind("bank-account", "bank accounts", "J"),
        IdentifierKind("payment-card", "payment cards", "J"),
        IdentifierKind("wallet", "addresses of wallets", "J"),
        IdentifierKind("vehicle", "vehicle identification numbers", "L"),
        IdentifierKind("device", "device numbers (IMEI)", "M"),
        IdentifierKind("mac-address", "hardware network addresses", "M"),
        IdentifierKind("web-address", "web addresses", "N"),
        IdentifierKind("ip-address", "network addresses", "O"),
        IdentifierKind("uuid", "universally unique identifiers", "R"),
        IdentifierKind("user-handle", "user names", "R"),
        IdentifierKind("free-text", "free text", "R"),
    )
}


@dataclass(frozen=True)
class Detection:
    """What the values of a column are.

    Attributes:
        kind: of identifier.
        format: the number in question, where a checksum told ("gb.nhs"); otherwise empty.
        passing, looked_at: so many values pass, of so many.
        inside: the identifiers stand inside longer texts.
    """

    kind: IdentifierKind
    passing: int
    looked_at: int
    format: str = ""
    inside: bool = False

    def sentence(self) -> str:
        """What was found, in words and without a value."""
        form = f" ({self.format})" if self.format else ""
        if self.inside:
            return f"{self.passing:,} of {self.looked_at:,} values looked at hold {self.kind.what}{form}"
        return f"the values look like {self.kind.what}{form}"


def detect_identifier(values: Sequence[str], varied: bool = True) -> Detection | None:
    """The direct identifier that the distinct values of a column are, by content alone; None: none was found.

    `varied` says that the values hardly repeat: sentences that do are the labels of a category, not free text.
    """
    tried = spread_sample(values)
    if not tried:
        return None
    for detect in (_by_shape, _by_checksum, _by_name):
        found = detect(tried)
        if found is not None:
            return found
    if varied and are_sentences(tried):
        return Detection(KINDS["free-text"], len(tried), len(tried))
    return None


def spread_sample(values: Sequence[str]) -> list[str]:
    """At most so many values as are looked at, spread evenly over all of them."""
    if len(values) <= VALUES:
        return list(values)
    return [values[i * len(values) // VALUES] for i in range(VALUES)]


def _share_passes(test: Test, values: Sequence[str]) -> int:
    """How many values pass; 0 as soon as too many have failed."""
    allowed, failed = len(values) - -(-len(values) * PASSING.numerator // PASSING.denominator), 0
    for value in values:
        if not test(value):
            failed += 1
            if failed > allowed:
                return 0
    return len(values) - failed


# --- shapes ------------------------------------------------------------------------------------------------


def _fits(pattern: str) -> Test:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


_PHONE = _fits(
    r"\+[1-9][\d\s()/.-]{6,20}\d"  # +49 351 …
    r"|00[1-9]\d{0,2}[\s/-][\d\s()/-]{6,16}\d"  # 0049 351 …
    r"|\(0?\d{2,5}\)\s?[\d\s/-]{4,11}\d"  # (030) …
    r"|(?:1[-. ])?(?:\([2-9]\d\d\)\s?|[2-9]\d\d[-. ])[2-9]\d\d[-. ]\d{4}(?: ?(?:x|ext\.?) ?\d{1,5})?"
    r"|0\d{1,4}[ /-]\d[\d -]{4,10}\d"  # 0351 …, 01 23 45 67 89
)


def _is_phone(text: str) -> bool:
    digits = sum(c.isdigit() for c in text)
    least = 9 if text[:1] == "0" and text[:2] != "00" else 7
    return least <= digits <= 16 and _PHONE(text)


_IP4 = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?::\d{1,5}|/\d{1,2})?")


def _is_ip_address(text: str) -> bool:
    found = _IP4.fullmatch(text)
    if found:
        return all(int(part) <= 255 and str(int(part)) == part for part in found.groups())
    if text.count(":") < 2 or not re.fullmatch(r"[0-9A-Fa-f:.]{3,45}(?:%\w+)?", text):
        return False
    from ipaddress import IPv6Address

    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def _no_versions(values: Sequence[str]) -> bool:
    """Four numbers with points are addresses only where most have a large one: 2.14.0.1 is a version."""
    large = 0
    for value in values:
        found = _IP4.fullmatch(value)
        parts = [int(part) for part in found.groups()] if found else [255]
        large += parts[0] >= 10 or max(parts) > 31
    return 2 * large >= len(values)


_PAIR = re.compile(r"\(?([-+]?\d{1,2}\.\d{3,})\s*[,; ]\s*([-+]?\d{1,3}\.\d{3,})\)?")
_POINT = re.compile(r"(?i)(?:SRID=\d+;)?POINT ?\(([-+]?\d{1,3}\.\d+) ([-+]?\d{1,2}\.\d+)\)")
_DEGREES = _fits(r"""\d{1,3}°\s?\d{1,2}['′]\s?(?:\d{1,2}(?:\.\d+)?["″])?\s?[NSEWO](?:[ ,]+\d{1,3}°.*)?""")


def _is_position(text: str) -> bool:
    for pattern, latitude, longitude in ((_PAIR, 1, 2), (_POINT, 2, 1)):
        if found := pattern.fullmatch(text):
            return abs(float(found[latitude])) <= 90 and abs(float(found[longitude])) <= 180
    return _DEGREES(text)


_STREETS = (
    r"street|st\.?|avenue|ave\.?|road|rd\.?|lane|ln\.?|drive|dr\.?|boulevard|blvd\.?|court|ct\.?|way|place|pl\.?|"
    r"terrace|square|sq\.?|close|crescent|highway|hwy\.?|parkway|trail|circle"
)
_ADDRESS = _fits(
    rf"\d{{1,5}}[a-z]? (?:[\w.'-]+ ){{1,4}}(?:{_STREETS})(?:[ ,].{{0,60}})?"
    r"|p\.? ?o\.? box \d+.*"
    r"|[\w.' -]{2,40}(?:strasse|str\.|weg|gasse|platz|allee|ring|damm|ufer) ?\d{1,4} ?[a-z]?(?:[ ,].{0,60})?"
    r"|\d{1,4},? ?(?:bis |ter )?(?:rue|avenue|boulevard|place|chemin|impasse|allée|quai) .{2,60}"
    r"|(?:calle|avenida|avda\.?|plaza|paseo|camino|via|viale|piazza|corso|rua|ulica|ul\.) .{2,40}[ ,]+(?:n[º°o]\.? ?)?"
    r"\d{1,4}.{0,40}"
)


def _is_address(text: str) -> bool:
    return len(text) >= 8 and _ADDRESS(text.casefold())


_EMAIL = r"[^@\s,;<>()]{1,64}@(?:[^@\s.,;<>()]{1,63}\.)+[A-Za-z]{2,24}"


@dataclass(frozen=True)
class _Shape:
    """The shape of a value; `together` is asked of all values, `least` says how many there must be.

    `plain` is the pattern that the test is, where it is one that databases understand, too.
    """

    kind: str
    test: Test
    least: int = 1
    together: Callable[[Sequence[str]], bool] | None = None
    plain: str | None = None

    @staticmethod
    def of(kind: str, pattern: str, least: int = 1) -> _Shape:
        """A shape that is one pattern and nothing else, without what only Python's patterns have."""
        return _Shape(kind, _fits(pattern), least, plain=pattern)


_SHAPES = (
    _Shape.of("email", _EMAIL),
    _Shape.of("web-address", r"(?:[Hh][Tt][Tt][Pp][Ss]?|[Ff][Tt][Pp])://\S+|[Ww][Ww][Ww]\.\S+\.\S+"),
    _Shape.of(
        "uuid",
        r"\{?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}\}?",
    ),
    _Shape(
        "mac-address",
        _fits(r"(?i)[0-9a-f]{2}(?:(?::[0-9a-f]{2}){5}|(?:-[0-9a-f]{2}){5})|(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}"),
        3,
        lambda values: any(c.isalpha() for v in values for c in v),
    ),
    _Shape("ip-address", _is_ip_address, 3, _no_versions),
    _Shape.of(
        "social-security",
        r"(?:00[1-9]|0[1-9][0-9]|[1-57-8][0-9]{2}|6[0-57-9][0-9]|66[0-57-9])-(?:0[1-9]|[1-9][0-9])-"
        r"(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})",
        3,
    ),
    _Shape("coordinates", _is_position, 2),
    _Shape("street-address", _is_address, 3),
    _Shape.of("user-handle", r"@[A-Za-z0-9_.]{2,30}", 3),
    _Shape.of(
        "record-number",
        r"(?:MRN|mrn|Mrn|PATIENT|Patient|patient|PAT|Pat|pat|PID|pid|SUBJ|Subj|subj|SUBJECT|Subject|subject|MEMBER|Member|"
        r"member|PROBAND|Proband|proband|HOSP|Hosp|hosp)[-_ #:.]{0,2}[0-9]{4,12}",
        3,
    ),
    _Shape("phone", _is_phone, 3),
)


def plain_patterns() -> dict[str, tuple[str, int]]:
    """The shapes that are one pattern, for databases: each kind with its pattern and the least number of values."""
    return {shape.kind: (shape.plain, shape.least) for shape in _SHAPES if shape.plain is not None}


def _by_shape(values: Sequence[str]) -> Detection | None:
    for shape in _SHAPES:
        if len(values) < shape.least:
            continue
        passing = _share_passes(shape.test, values)
        if passing and (shape.together is None or shape.together([v for v in values if shape.test(v)])):
            return Detection(KINDS[shape.kind], passing, len(values))
    return None


# --- checksums ---------------------------------------------------------------------------------------------

# Formats of python-stdnum that people have (not companies or things) and that have a checksum, most telling first.
_FORMATS = (
    ("bank-account", "iban ar.cbu es.ccc"),
    (
        "national-number",
        "it.codicefiscale mx.curp cn.ric fr.nir be.nn ch.ssn ro.cnp si.emso za.idnr kr.rrn fi.hetu ee.ik "
        "no.fodselsnummer tr.tckimlik bg.egn cz.rc is_.kennitala pl.pesel se.personnummer th.pin es.dni es.nie",
    ),
    ("tax-number", "de.idnr fr.nif ie.pps ua.rntrc"),
    ("health-number", "gr.amka ca.bc_phn at.vnr gb.nhs"),
    ("national-number", "br.cpf in_.aadhaar do.cedula ec.ci hr.oib cl.rut nl.bsn lv.pvn pt.cc"),
    ("tax-number", "pt.nif au.tfn nz.ird gb.utr pl.nip"),
    ("bank-account", "no.kontonr"),
    ("national-number", "ca.sin"),
)
_CARD = _fits(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3[68]\d{12}|35\d{14}|6(?:011|5\d\d)\d{12}"
)
_VIN = _fits(r"[A-HJ-NPR-Z0-9]{17}")
_VIN_VALUES = {c: int(n) for c, n in zip("ABCDEFGHJKLMNPRSTUVWXYZ", "12345678123457923456789", strict=True)}
_VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)


def _is_card(text: str) -> bool:
    digits = re.sub(r"[ -]", "", text)
    return _CARD(digits) and _stdnum("luhn")(digits)


def _is_vehicle(text: str) -> bool:
    if not _VIN(text) or text.isdigit():
        return False
    total = sum(
        w * (int(c) if c.isdigit() else _VIN_VALUES[c]) for w, c in zip(_VIN_WEIGHTS, text, strict=True)
    )
    return text[8] == "0123456789X"[total % 11]


def _is_nhs(text: str) -> bool:
    """The checksum is that of ISBN-10; the digits that numbers begin with are not."""
    return text[:1] not in "58" and _stdnum("gb.nhs")(text)


def _no_books(values: Sequence[str]) -> bool:
    return not any(v.rstrip()[-1:] in ("X", "x") for v in values)


@cache
def _stdnum(name: str) -> Test:
    """The test of a format. Some raise errors of their own on texts that are no numbers: line ends, other digits."""
    is_valid: Test = import_module(f"stdnum.{name}").is_valid

    def test(text: str) -> bool:
        """Whether a text is such a number."""
        try:
            return is_valid(text)
        except (ValueError, LookupError):
            return False

    return test


def _by_checksum(values: Sequence[str]) -> Detection | None:
    if len(values) < LEAST_CHECKED:
        return None
    lengths = Counter(sum(c.isalnum() for c in v) for v in values)
    usual = [n for n, count in lengths.items() if 20 * count >= len(values)]
    if not usual or max(usual) < 8 or min(usual) > 64:
        return None
    formats: list[tuple[str, str, Test]] = []
    digits = sum(c.isdigit() for v in values for c in v)
    if max(usual) <= 34 and 4 * digits >= sum(map(len, values)):
        formats += [
            ("payment-card", "", _is_card),
            ("device", "", _stdnum("imei")),
            ("vehicle", "", _is_vehicle),
        ]
        formats += [
            (kind, name.replace("_", ""), _is_nhs if name == "gb.nhs" else _stdnum(name))
            for kind, names in _FORMATS
            for name in names.split()
            if name != "gb.nhs" or _no_books(values)
        ]
    if max(usual) >= 26:
        formats.append(("wallet", "bitcoin", _stdnum("bitcoin")))
    padded = _padded(values)
    for kind, name, test in formats:
        for tried in (values, padded) if padded else (values,):
            passing = _share_passes(test, tried)
            if passing and _has_checksum(test, tried):
                return Detection(KINDS[kind], passing, len(values), name)
    return None


def _padded(values: Sequence[str]) -> list[str]:
    """The values with the leading zeros that a spreadsheet took away; empty where nothing says so."""
    longest = max(map(len, values))
    if not all(v.isascii() and v.isdigit() and len(v) >= longest - 3 for v in values):
        return []
    return [v.zfill(longest) for v in values] if any(len(v) < longest for v in values) else []


def _has_checksum(test: Test, values: Sequence[str]) -> bool:
    """Does a value with one character changed pass with at most 1/10? The changes are the same in each run."""
    drawn, passed, made = random.Random(0), 0, 0  # noqa: S311 - nothing secret is drawn
    for number in range(ALTERED):
        value = values[number % len(values)]
        places = [i for i, c in enumerate(value) if c.isascii() and c.isalnum()]
        if not places:
            continue
        place = drawn.choice(places)
        old = value[place]
        alphabet = "0123456789" if old.isdigit() else "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        new = drawn.choice([c for c in alphabet if c != old.upper()])
        made += 1
        passed += test(value[:place] + new + value[place + 1 :])
    return made > 0 and Fraction(passed, made) <= BY_CHANCE


# --- person names ------------------------------------------------------------------------------------------

LEAST_NAMES = 8  # different values; among fewer, places and months may all be names too
_TITLES = frozenset(
    _word_list(
        """
mr mrs ms miss mx dr prof sir dame herr frau hr fr m mme mlle sr sra srta dott jr sr ii iii phd md dds dvm
rn
"""
    )
)
_PARTICLES = frozenset(
    _word_list(
        """
de la le du des del della der den von van zu zur bin ibn al el da dos das di y e af av o
"""
    )
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
# Words of forms and tables that are somebody's name, too.
_NOT_NAMES = frozenset(
    _word_list(
        """
age sad man job per min max par toy pin pal may april june august summer sun will art young old white black
brown green gray grey red blue long short small large king prince best love day church college park field
hill west east north south price sales case cross bank case major minor private single married widow page
city county road street hand first last rose violet cherry olive amber ruby india china america france
london paris asia
"""
    )
)


@cache
def _known_names() -> tuple[frozenset[str], frozenset[str]]:
    text = files("maskwright.identifiers").joinpath("person_names.txt").read_text("utf-8")
    given, family = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return frozenset(given) - _NOT_NAMES, frozenset(family) - _NOT_NAMES


_LETTERS = str.maketrans({"ß": "ss", "ø": "o", "ł": "l", "đ": "d", "æ": "ae", "ı": "i", "œ": "oe"})


def _folded(word: str) -> str:
    text = normalize("NFKD", word.casefold().translate(_LETTERS))
    return "".join(c for c in text if not combining(c))


def _name_words(text: str) -> list[str] | None:
    """The words of what could be a name, titles and particles left out; None: it is none."""
    if len(text) > 60 or any(c.isdigit() for c in text) or not re.fullmatch(r"[\w\s.,'’-]+", text):
        return None
    words = [w for w in _WORD.findall(text) if _folded(w) not in _TITLES | _PARTICLES]
    return words if 1 <= len(words) <= 5 else None


def _by_name(values: Sequence[str]) -> Detection | None:
    if len(values) < LEAST_NAMES:
        return None
    allowed = len(values) - -(-len(values) * PASSING.numerator // PASSING.denominator)
    parsed = []
    for value in values:
        words = _name_words(value)
        if words is None:
            allowed -= 1
            if allowed < 0:
                return None
        else:
            parsed.append(words)
    given, family = _known_names()
    several = [words for words in parsed if len(words) > 1]
    if 5 * len(several) >= 4 * len(parsed):
        some = sum(any(_is_known(w, given, family) for w in words) for words in several)
        whole = sum(_is_whole_name(words, given, family) for words in several)
        found = 10 * some >= 6 * len(several) and 4 * whole >= len(several)
    else:
        pieces = [[_folded(p) for w in words for p in re.split(r"[-'’]", w)] for words in parsed]
        known = max(sum(any(p in names for p in word) for word in pieces) for names in (given, family))
        found = 4 * known >= 3 * len(parsed)
    return Detection(KINDS["person-name"], len(parsed), len(values)) if found else None


def _is_known(word: str, given: frozenset[str], family: frozenset[str]) -> bool:
    return any(p in given or p in family for p in map(_folded, re.split(r"[-'’]", word)))


def _is_whole_name(words: Sequence[str], given: frozenset[str], family: frozenset[str]) -> bool:
    """A given name with another name, or a family name with initials."""
    parts = [[_folded(p) for p in re.split(r"[-'’]", w)] for w in words]
    initials = [len(w) <= 2 for w in words]
    if any(initials):
        return any(
            p in family for part, initial in zip(parts, initials, strict=True) if not initial for p in part
        )
    firsts = [any(p in given for p in part) for part in parts]
    others = [any(p in given or p in family for p in part) for part in parts]
    return any(first and any(others[:i] + others[i + 1 :]) for i, first in enumerate(firsts))


# --- free text, and identifiers inside other texts ---------------------------------------------------------


def are_sentences(values: Sequence[str]) -> bool:
    """Whether texts are, on average, as long and of as many words as sentences."""
    words = sum(v.count(" ") for v in values)
    return len(values) > 1 and sum(map(len, values)) >= 40 * len(values) and words >= 4 * len(values)


_INSIDE = {
    "email": re.compile(rf"(?<![\w.]){_EMAIL}"),
    "social-security": re.compile(r"(?<![\d-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])"),
    "phone": re.compile(r"(?<![\w+])\+[1-9]\d{0,2}[ (/-][\d ()/-]{6,16}\d(?!\d)"),
    "bank-account": re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?(?!\w)"),
}


def identifiers_inside(text: str) -> Iterator[tuple[int, int, str]]:
    """Where an identifier stands inside a text: from, to, and its kind."""
    if len(text) < 6:
        return
    for kind, pattern in _INSIDE.items():
        for found in pattern.finditer(text):
            if kind != "bank-account" or _stdnum("iban")(found[0]):
                yield found.start(), found.end(), kind


LEAST_NAMED = Fraction(
    1, 20
)  # of the sentences of a column: fewer may be streets or prizes called after somebody


def _names_somebody(text: str) -> bool:
    """Whether a sentence has a whole name inside, or a title before a name, in words with capitals side by side."""
    given, family = _known_names()
    title = before = False  # the word before: a title, a given name
    end = -1
    for found in _WORD.finditer(text):
        word, apart = _folded(found[0]), text[end : found.start()] if end >= 0 else "."
        end = found.end()
        beside = apart.strip() in ("", ".") if title else apart == " "
        known = found[0][0].isupper() and (word in family or word in given)
        if known and beside and (title or before):
            return True
        title, before = word in _TITLES and len(word) > 1, known and word in given
    return False


def detect_inside(values: Sequence[str]) -> Detection | None:
    """The kind of identifier that stands inside some of the texts of a column, most often; None: in none of them.

    Names of people are looked for in sentences alone, and found where several of them have one.
    """
    counts: Counter[str] = Counter()
    for value in values:
        counts.update({kind for _, _, kind in identifiers_inside(value)})
    if not counts and are_sentences(values):
        named = sum(map(_names_somebody, spread_sample(values)))
        if named >= 3 and named >= LEAST_NAMED * min(len(values), VALUES):
            counts["person-name"] = named
    if not counts:
        return None
    kind, number = counts.most_common(1)[0]
    return Detection(KINDS[kind], number, len(values), inside=True)
