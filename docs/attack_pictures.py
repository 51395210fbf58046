"""The pictures of docs/attacks/: a small table as it is published, and what an attack believes of it.

Made by `make docs`. Every number is what the product's own attack answers on the example; nothing is written by hand
but the words.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import maskwright as mw
from maskwright.attacks.downcoding import split_beliefs
from maskwright.attacks.learned import SeenGroups, learned_shares
from maskwright.domain.beliefs import Beliefs
from maskwright.report.charts import STYLE, WIDTH
from maskwright.report.html import Markup, tag

FOLDER = Path(__file__).parent / "attacks"
LINE, LEFT, MIDDLE, BAR, TEXT = 20, 16, 348, 190, 44  # pixels, and letters of a line on the right
SECRET, TWO = "sensitive", {"model": "k-anonymity", "k": 2}
HIV = {"role": "sensitive", "sensitive_sets": [["HIV"]]}  # flu is no secret
COVERED = {"role": "quasi-identifier", "hierarchy": "suppress"}
Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Shown:
    """A small table on the left: its title, the names of its columns, its rows, and the column that tells classes."""

    title: str
    head: Sequence[str]
    rows: Rows
    by: int | None = 0


@dataclass(frozen=True)
class Bar:
    """A belief on the right; hollow: what is believed without what the attack uses."""

    words: str
    share: Fraction
    hollow: bool = False


@dataclass(frozen=True)
class Picture:
    """What is drawn for one attack."""

    shown: Sequence[Shown]
    bars: Sequence[Bar]


def published(head: Sequence[str], rows: Rows, columns: Mapping[str, Any], **policy: Any) -> mw.Release:
    """A release of a small table; columns that are not described are quasi-identifiers."""
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(head)})
    usual = {"version": 1, "require": [TWO], "method": "optimal-lattice"}
    described = dict.fromkeys(head, "quasi-identifier") | dict(columns)
    return mw.anonymize(table, usual | {"columns": described} | policy, seed=1)


def found_by(attack: Any, release: Any, **how: Any) -> Beliefs:
    """What one attack finds."""
    beliefs = mw.attack(release, attack, **how)
    assert isinstance(beliefs, Beliefs)  # noqa: S101 - one attack was asked for
    return beliefs


def table_of(release: mw.Release, title: str = "published", by: int | None = 0) -> Shown:
    """The published rows, sorted."""
    rows = [[str(cell) for cell in row.values()] for row in release.table.to_pylist()]
    return Shown(title, release.table.column_names, sorted(rows), by)


def two_classes(attack: str) -> tuple[mw.Release, Beliefs]:
    """Two zip codes, of which one shows a single disease, and what an attack finds."""
    rows = [("130**", "HIV")] * 3 + [("148**", d) for d in ("HIV", "flu", "flu", "none")]
    release = published(("zip", "disease"), rows, {"disease": SECRET})
    return release, found_by(attack, release)


def homogeneity() -> Picture:
    """Everybody of a class has the same value."""
    release, found = two_classes("homogeneity")
    return Picture([table_of(release)], [
        Bar("that anybody in the table has HIV", found.worst.before, hollow=True),
        Bar("that somebody with zip 130** has HIV", found.worst.after),
    ])  # fmt: skip


def skewness() -> Picture:
    """A value is more likely in a class than in the table."""
    release, found = two_classes("skewness")
    times = f"{float(found.worst.after / found.worst.before):.3g}"
    return Picture([table_of(release)], [
        Bar("that anybody in the table has HIV", found.worst.before, hollow=True),
        Bar(f"that somebody with zip 130** has HIV: {times} times as likely", found.worst.after),
    ])  # fmt: skip


def similarity() -> Picture:
    """Different salaries that are close to each other."""
    rows = [("130**", x) for x in (30000, 31000, 32000)] + [("148**", x) for x in (10000, 90000, 100000)]
    release = published(("zip", "salary"), rows, {"salary": SECRET})
    worst = found_by("similarity", release).worst
    return Picture([table_of(release)], [
        Bar("that anybody earns between 30,000 and 32,000", worst.before, hollow=True),
        Bar("that somebody with zip 130** does", worst.after),
    ])  # fmt: skip


def linkage() -> Picture:
    """Who is found by age and sex."""
    rows = [(31, "m"), (34, "m"), (38, "m"), (22, "f"), (27, "f")]
    release = published(
        ("age", "sex"), rows, {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}}}
    )
    found, classes = found_by("linkage", release), release.grouping.classes
    return Picture([table_of(release)], [
        Bar("to find the right row in the raw table, where all ages differ", found.worst.before, hollow=True),
        Bar("to find the row of one of the two women in the release", found.worst.after),
        Bar("to find the right row, on average over all five people", Fraction(classes.n, int(classes.sizes.sum()))),
    ])  # fmt: skip


def background_knowledge() -> Picture:
    """Figure 3 of Martin et al."""
    classes = {
        "1": "flu flu lung-cancer lung-cancer mumps",
        "2": "flu flu breast-cancer heart-disease ovarian-cancer",
    }
    rows = [(c, d.replace("-", " ")) for c, values in classes.items() for d in values.split()]
    release = published(("class", "disease"), rows, {"disease": SECRET})
    found = found_by("background-knowledge", release, adversary="insider", facts=2)
    curve = found.measures["attributes"]["disease"]["implications"]
    return Picture([table_of(release)], [
        Bar("that somebody in class 1 has flu, by the class alone", curve[0], hollow=True),
        Bar("knowing that the person does not have lung cancer", curve[1]),
        Bar("knowing that it is neither lung cancer nor mumps", curve[2]),
    ])  # fmt: skip


def minimality() -> Picture:
    """Table 1 of Wong et al.: two zip codes were merged, and only one of them can be why."""
    people = [("a", "HIV")] * 2 + [("b", "none")] * 5
    wanted = {"model": "simple-l-diversity", "l": 2, "values": ["HIV"]}
    release = published(("zip", "disease"), people, {"zip": COVERED, "disease": SECRET}, require=[wanted])
    known = Shown("known to everybody", ("zip", "people"), [("a", "2"), ("b", "5")], None)
    alone, worst = found_by("homogeneity", release).worst, found_by("minimality", release).worst
    return Picture([table_of(release), known], [
        Bar("that somebody has HIV, by the class of seven alone", alone.after, hollow=True),
        Bar("that the two people with zip a have HIV: why else would they have been merged with b?", worst.after),
    ])  # fmt: skip


def combined() -> Picture:
    """Four people whose classes of two were merged."""
    people = [("1", "p"), ("1", "p"), ("2", "q"), ("2", "r")]
    wanted = [TWO, {"model": "simple-l-diversity", "l": 2}]
    release = published(("a", "value"), people, {"a": COVERED, "value": SECRET}, require=wanted)
    known = Shown("known to everybody", ("a", "people"), [("1", "2"), ("2", "2")], None)
    one: dict[str, Any] = {"adversary": "insider", "facts": 1}
    alone = found_by("homogeneity", release).worst
    return Picture([table_of(release), known], [
        Bar("that somebody with a = 1 has p, by the class alone", alone.after, hollow=True),
        Bar("knowing the method", found_by("minimality", release).worst.after),
        Bar("knowing one fact about others", found_by("background-knowledge", release, **one).worst.after),
        Bar("knowing the method and one fact", found_by("combined", release, **one).worst.after),
    ])  # fmt: skip


def absence() -> Picture:
    """A ward of five that is missing, though it is large enough."""
    held = {"ward 1": 1, "ward 2": 1, "ward 3": 0, "ward 4": 3}
    rows = [(w, "HIV" if i < n else "none") for w, n in held.items() for i in range(5)]
    wanted = [TWO, {"model": "simple-l-diversity", "l": 2, "values": ["HIV"]}]
    dropping = {"name": "optimal-lattice", "suppression": "25%", "suppress": "failing-classes"}
    release = published(("ward", "disease"), rows, {"disease": SECRET}, require=wanted, method=dropping)
    there = [str(row["ward"]) for row in release.table.to_pylist() if row["disease"] == "HIV"]
    wards = sorted({str(row["ward"]) for row in release.table.to_pylist()})
    lines = [(w, "5", str(there.count(w)) if w in wards else "not published") for w in held]
    worst = found_by("absence", release).worst
    return Picture([Shown("published, and missing", ("ward", "people", "HIV"), lines, None)], [
        Bar("that somebody who is published has HIV", Fraction(len(there), release.table.num_rows), hollow=True),
        Bar("that somebody in the missing ward has HIV: more than half of them must", worst.after),
    ])  # fmt: skip


def background_join() -> Picture:
    """Who knows the job reads the diagnosis."""
    rows = [("30-39", "diabetes", "farmer"), ("30-39", "asthma", "teacher")]
    release = published(("age", "diagnosis", "job"), rows, {"diagnosis": SECRET, "job": SECRET})
    worst = found_by(mw.attacks.BackgroundJoin(known=["job"]), release).worst
    return Picture([table_of(release)], [
        Bar("that Bob, who is in this class, has asthma", worst.before, hollow=True),
        Bar("knowing that Bob is a teacher", worst.after),
    ])  # fmt: skip


def intersection() -> Picture:
    """Table 1 (c) and (d) of CODIP: four people in two groupings."""
    people = [
        ("x", "1", "hypertension"),
        ("y", "2", "hypertension"),
        ("x", "2", "diabetes"),
        ("y", "1", "asthma"),
    ]
    kept, made = ("street", "birthday"), []
    for name in kept:
        levels = {q: COVERED | {"levels": [0 if q == name else 1]} for q in kept}
        made.append(published((*kept, "diagnosis"), people, levels | {"diagnosis": SECRET}))
    alone = [found_by("homogeneity", release).worst.after for release in made]
    worst = found_by("intersection", made).worst
    return Picture([table_of(made[0], "first release"), table_of(made[1], "second release", 1)], [
        Bar("somebody's diagnosis, by the first release alone", alone[0], hollow=True),
        Bar("somebody's diagnosis, by the second release alone", alone[1], hollow=True),
        Bar("by both: that the person with street y and birthday 1 has asthma", worst.after),
    ])  # fmt: skip


def linked_visits() -> Picture:
    """Ten people were at each visit, two at any two of them."""
    places = {"June": "C", "March": "A", "May": "B"}
    came = {
        "Ann": ("March", "May"),
        "Bob": ("March", "May", "June"),
        "Cid": ("March", "June"),
        "Dee": ("May", "June"),
    }
    came |= {f"{month} only, {i}": (month,) for month in places for i in range(7)}
    rows = [
        (who, month, places[month], "HIV" if (who, month) == ("Bob", "June") else "flu")
        for who, months in came.items()
        for month in months
    ]
    beliefs = []
    for known in (1, 2):
        unit = {"column": "who", "publish": "pseudonym", "events": known}
        columns = {"who": "identifier", "disease": HIV}
        release = published(("who", "month", "ward", "disease"), rows, columns, unit=unit)
        beliefs.append(found_by("linked-visits", release).worst.after)
    lines = [(who, ", ".join(months)) for who, months in came.items() if len(months) > 1]
    others = [(f"7 others in {month}", month) for month in ("March", "May", "June")]
    return Picture([Shown("visits, linked by pseudonyms", ("person", "months"), lines + others, None)], [
        Bar("that Ann has HIV (Bob does, seen in June), knowing that she was there in March", beliefs[0], hollow=True),
        Bar("knowing that she was there in March and in May", beliefs[1]),
    ])  # fmt: skip


def linked_releases() -> Picture:
    """Twenty-seven people, with ages by ten years and by seven."""
    ages = [age for age in range(21, 49) if age != 28]
    rows = [(f"p{age}", age, "HIV" if age in (24, 29, 33, 38, 45) else "flu") for age in ages]
    who = {"role": "identifier", "publish": "pseudonym", "stable": True, "group": "people"}
    made = []
    for width in (10, 7):
        age = {"role": "quasi-identifier", "hierarchy": {"intervals": [width]}, "levels": [1]}
        columns = {"who": who, "age": age, "disease": HIV}
        made.append(published(("who", "age", "disease"), rows, columns, require=[TWO | {"k": 5}]))
    alone = [found_by("homogeneity", release).worst.after for release in made]
    worst = found_by("linked-releases", made).worst
    return Picture([Shown("both releases, row by row", ("first", "second", "people"), _ages(made), None)], [
        Bar("that somebody has HIV, by the first release alone", alone[0], hollow=True),
        Bar("that somebody has HIV, by the second release alone", alone[1], hollow=True),
        Bar("by both: that the only person in 20-29 and in 28-34 has HIV", worst.after),
    ])  # fmt: skip


def _ages(made: Sequence[mw.Release]) -> list[tuple[str, str, str]]:
    """The pairs of labels that rows with the same pseudonym have, and how many people have each."""
    tables = [{row["who"]: str(row["age"]) for row in release.table.to_pylist()} for release in made]
    pairs = [(tables[0][who], tables[1][who]) for who in tables[0]]
    return [(*pair, str(pairs.count(pair))) for pair in sorted(set(pairs))]


def passing_columns() -> Picture:
    """A ward that is published as it is."""
    rows = [("30-39", "7", d) for d in ("HIV", "HIV", "flu")] + [("30-39", w, "flu") for w in "1112223"]
    wanted = [TWO, {"model": "belief", "max": "1", "attribute": "disease"}]
    ward = {"role": "insensitive", "near_unique": "allow"}
    release = published(("age", "ward", "disease"), rows, {"ward": ward, "disease": HIV}, require=wanted)
    return Picture([table_of(release, by=1)], [
        Bar("that somebody in the class has HIV", found_by("homogeneity", release).worst.after, hollow=True),
        Bar("knowing that the person's ward is 7", found_by("passing-columns", release).worst.after),
    ])  # fmt: skip


def learned() -> Picture:
    """What two groups teach about a third."""
    groups = [(("smoker", "non-smoker"), ("cancer", "flu")), (("smoker", "smoker"), ("cancer", "flu")),
              (("non-smoker", "non-smoker"), ("flu", "flu"))]  # fmt: skip
    deals = SeenGroups(
        np.array([[1, 0, 1, 0]]), np.array([0, 0, 1, 2]), np.array([1, 1, 2, 2]), np.array([0, 0, 1, 1, 2]),
        np.array([0, 1, 0, 1, 1]), np.array([1, 1, 1, 1, 2]), 2, (2,),
    )  # fmt: skip
    rows = [(str(g + 1), *pair) for g, (who, ill) in enumerate(groups) for pair in zip(who, ill, strict=True)]
    even = Fraction(deals.even_shares()[0])
    bars = [Bar("that the smoker in group 1 has cancer, if all orders are equally likely", even, hollow=True)]
    for rounds in (1, 2, 3):
        share = Fraction(float(learned_shares(deals, 0, rounds)[0][0])).limit_denominator(10**6)
        bars.append(Bar(f"learned from all groups, after {rounds} round{'s' if rounds > 1 else ''}", share))
    return Picture([Shown("groups (values in any order)", ("group", "person", "disease"), rows)], bars)


def downcoding() -> Picture:
    """A block with two children, nine tenths and one tenth of the people."""
    shares = (Fraction(9, 10), Fraction(1, 10))
    lines = [("13000-13099", "town, 9 of 10 people"), ("", "village, 1 of 10")]
    bars = [Bar("that somebody in the block lives in the village", shares[1], hollow=True)]
    bars += [
        Bar(f"the same of somebody in a class of {n} with this label", split_beliefs(shares, n)[1])
        for n in (2, 3, 5)
    ]
    return Picture([Shown("a label and what it covers", ("label", "parts"), lines, None)], bars)


def singling_out() -> Picture:
    """Two classes, one of which describes nobody outside."""
    rows = [(30 + i, "Lund") for i in range(5)] + [(40 + i, "Lund") for i in range(5)]
    age = {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}}
    release = published(("age", "town"), rows, {"age": age}, require=[TWO | {"k": 5}])
    outside = [{"age": 30 + i % 10, "town": "Lund"} for i in range(200)]
    worst = found_by(mw.attacks.SinglingOut(control=outside), release).worst
    lines = [("30-39, Lund", "5", "200"), ("40-49, Lund", "5", "none")]
    return Picture([Shown("who a class describes", ("class", "inside", "outside"), lines, None)], [
        Bar("to describe exactly one person without the release, at most", worst.before, hollow=True),
        Bar("to describe exactly one by the class 40-49, Lund and a trait that one person in five has", worst.after),
    ])  # fmt: skip


def known_items() -> Picture:
    """Four baskets of three things."""
    rows = [("x", basket) for basket in ("a;b;c", "a;b", "a;c", "b;c")]
    release = published(("zip", "basket"), rows, {"basket": {"role": SECRET, "multivalued": ";"}})
    found = [found_by(mw.attacks.KnownItems(items=n), release).worst for n in (1, 2, 3)]
    return Picture([table_of(release, by=None)], [
        Bar("to find the right basket, by the class alone", found[0].before, hollow=True),
        *(Bar(f"knowing {n} thing{'s' if n > 1 else ''} in it", f.after) for n, f in enumerate(found, start=1)),
    ])  # fmt: skip


def perturbed_columns() -> Picture:
    """Nine incomes, each published as the mean of three."""
    incomes = (39000, 41000, 44000, 52000, 53000, 58000, 70000, 74000, 81000)
    changed = {"role": "insensitive", "near_unique": "allow", "publish": {"microaggregate": {"k": 3}}}
    release = published(("zip", "income"), [("130**", x) for x in incomes], {"income": changed})
    worst = found_by("perturbed-columns", release).worst
    ways = [Fraction(float(x)).limit_denominator(1000) for x in (worst.before, worst.after)]
    return Picture([table_of(release, by=1)], [
        Bar("to find the right row, by the class alone", ways[0], hollow=True),
        Bar("knowing the true income of 41,000", ways[1]),
    ])  # fmt: skip


def perturbed_numbers() -> Picture:
    """Six incomes, rounded to hundreds; three of the four that become 100 are 140."""
    rows = [("A", 60), ("A", 140), ("B", 140), ("B", 240), ("C", 140), ("C", 240)]
    asked = {"model": "belief", "max": "1", "attribute": "income", "within": "10%"}
    changed = {"role": SECRET, "publish": {"round": 100}}
    release = published(("zip", "income"), rows, {"income": changed}, require=[TWO, asked])
    ways = [found_by(name, release).worst.after for name in ("homogeneity", "perturbed-numbers")]
    return Picture([table_of(release)], [
        Bar("to name a number within 10 % of the true one, if the true incomes were published", ways[0], hollow=True),
        Bar("knowing how incomes are distributed and were rounded: 140", ways[1].limit_denominator(1000)),
    ])  # fmt: skip


def close_when_diverse(qi: Any, sa: Any, rng: Any) -> list[list[int]]:
    """The method of your-own-method.md: a group is closed when no value makes up more than half of it."""
    groups, group = [], list[int]()
    for row in sorted(range(len(sa)), key=lambda i: qi[i]):
        group.append(row)
        held = [sa[i] for i in group]
        if max(map(held.count, held)) * 2 <= len(group):
            groups.append(group)
            group = []
    return groups


def your_own_method() -> Picture:
    """Seven people of your-own-method.md."""
    ages, ill = [34, 36, 41, 45, 47, 52, 58], ["flu", "flu", "flu", "cold", "ulcer", "cold", "flu"]
    qi = [(age,) for age in ages]
    groups = close_when_diverse(qi, ill, None)
    found = mw.attacks.possible_worlds(qi, ill, groups, close_when_diverse)
    rows = [("1", str(ages[i]), ill[i]) for i in groups[0]]
    share = Fraction(sum(ill[i] == "flu" for i in groups[0]), len(groups[0]))
    return Picture([Shown("one group (values in any order)", ("group", "age", "disease"), rows)], [
        Bar("that somebody in the group has flu", share, hollow=True),
        Bar("that the two youngest have flu: the group was not closed after them", found.rows[0]["flu"].after),
    ])  # fmt: skip


PICTURES: Mapping[str, Callable[[], Picture]] = {
    "absence": absence, "background-join": background_join, "background-knowledge": background_knowledge,
    "combined": combined, "downcoding": downcoding, "homogeneity": homogeneity, "intersection": intersection,
    "known-items": known_items, "learned": learned, "linkage": linkage, "linked-releases": linked_releases,
    "linked-visits": linked_visits, "minimality": minimality, "passing-columns": passing_columns,
    "perturbed-columns": perturbed_columns, "perturbed-numbers": perturbed_numbers, "similarity": similarity,
    "singling-out": singling_out, "skewness": skewness, "your-own-method": your_own_method,
}  # fmt: skip


# --- drawing ------------------------------------------------------------------------------------------


def drawn(name: str, picture: Picture) -> str:
    """The picture as a file: tables on the left, beliefs on the right; light and dark."""
    tables, low = _tables(picture.shown)
    bars, high = _bars(picture.bars)
    height = max(low, high) + 10
    words = "; ".join(f"{bar.words}: {share_text(bar.share)}" for bar in picture.bars)
    alt = f"{name}, on an example. {words}"
    body = tag(
        "svg", tag("title", alt), tag("style", Markup(STYLE)), *tables, *bars, xmlns="http://www.w3.org/2000/svg",
        width=WIDTH, viewBox=f"0 0 {WIDTH} {height}", role="img", aria_label=alt, class_="chart",
    )  # fmt: skip
    return str(body) + "\n"


def share_text(share: Fraction) -> str:
    """A belief as it is written: a fraction where that is short."""
    return str(share) if share.denominator < 1000 else f"{float(share):.3f}"


def _tables(shown: Sequence[Shown]) -> tuple[list[Markup], int]:
    parts, y = list[Markup](), 0
    for table in shown:
        widths = [
            7 * max(len(str(row[i])) for row in [table.head, *table.rows]) + 18
            for i in range(len(table.head))
        ]
        places = [LEFT + sum(widths[:i]) for i in range(len(widths))]
        end = LEFT + sum(widths) - 8
        y += LINE + 4
        parts.append(tag("text", table.title, x=LEFT, y=y, class_="soft"))
        y += LINE
        parts += [
            tag("text", name, x=x, y=y, font_weight="bold")
            for x, name in zip(places, table.head, strict=True)
        ]
        parts.append(_rule(LEFT, end, y + 6, "limit"))
        y += 4
        for before, row in zip([None, *table.rows], table.rows, strict=False):
            if before is not None and table.by is not None and before[table.by] != row[table.by]:
                parts.append(_rule(LEFT, end, y + 6, "grid"))
            y += LINE
            parts += [tag("text", str(cell), x=x, y=y) for x, cell in zip(places, row, strict=True)]
    return parts, y


def _rule(x1: int, x2: int, y: int, kind: str) -> Markup:
    return tag("line", x1=x1, x2=x2, y1=y, y2=y, class_=kind)


def _bars(bars: Sequence[Bar]) -> tuple[list[Markup], int]:
    parts, y = [tag("text", "what is believed", x=MIDDLE, y=LINE + 4, class_="soft")], LINE + 12
    for bar in bars:
        for line in textwrap.wrap(bar.words, TEXT):
            y += 16
            parts.append(tag("text", line, x=MIDDLE, y=y))
        kind = "bar before" if bar.hollow else "bar"
        width = max(1, round(BAR * float(bar.share)))
        parts.append(tag("rect", x=MIDDLE, y=y + 6, width=BAR, height=12, class_="grid", fill="none"))
        parts.append(tag("rect", x=MIDDLE, y=y + 6, width=width, height=12, class_=kind))
        parts.append(tag("text", share_text(bar.share), x=MIDDLE + BAR + 10, y=y + 16, font_weight="bold"))
        y += 28
    return parts, y


def pictures() -> dict[Path, str]:
    """File → picture."""
    return {FOLDER / f"{name}.svg": drawn(name, made()) for name, made in PICTURES.items()}


if __name__ == "__main__":
    for path, text in pictures().items():
        path.write_text(text, encoding="utf-8")
