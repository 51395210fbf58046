"""Linkage: somebody who knows a person's quasi-identifiers looks for that person's row.

The prosecutor knows that the person is in the table: the chance to pick the right row is one over the people of the
class. The journalist knows a population of which the table is a part: one over the people of the population who match
the class; where there is no table of them, that is estimated from the sample. The marketer links everybody: the share
linked correctly is the average of those chances. How few attributes are enough to single somebody out is told by the
minimal unique sets (see `maskwright.domain.unique_sets`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from maskwright.attacks._shared.secrets import HALF, dropped_people, in_words, people_in_words
from maskwright.attacks.homogeneity import OwnedRows
from maskwright.attacks.linked_visits import known_levels
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs, Kind
from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_bincount, numbered_values
from maskwright.domain.grouping import Grouping, exact_view
from maskwright.domain.references import class_weights, count_matches, furnished_classes
from maskwright.domain.sample import Floats, Sample, weight_totals
from maskwright.domain.unique_sets import minimal_uniques
from maskwright.population.estimates import KNOWN_ACCURACY
from maskwright.population.individual import SampledClasses, household_figures, wildcard_totals

EXACT: Kind = "exact"
ESTIMATED: Kind = "estimated"


class Linkage(Attack):
    """The chance that a person who is known to be in the table is matched to the right row.

    Attributes:
        unique_sets: combinations of up to so many attributes are searched for those that single people out
            (0: none; fewer where the table is too large for that many).
    """

    name: ClassVar[str] = "linkage"
    about: ClassVar[About] = "rows"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()

    unique_sets: int = Field(default=4, ge=0, le=10)

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst chance to match a person to the right row, and risks before and after."""
        grouping = exact_view(target.grouping) if target.exact else target.grouping
        before, after = grouping.summary.tuple_sizes, grouping.classes.sizes
        own = _own_classes(grouping)
        measures: dict[str, Any] = {
            "before": _class_risks(before, own.before),
            "after": _class_risks(after, own.after),
        }
        matching, estimated = _matching_people(target, grouping), sampled_risks(target, grouping)
        worst, kind = _prosecutor(grouping, before), EXACT
        if own.rows is not None:
            measures["by_rows"] = {"before": own.rows.before, "after": own.rows.after}
            worst = own.rows
        if (visits := _known_visits(target)) and own.rows is not None:
            known, found = _by_known_visits(grouping, visits)
            measures["known_visits"] = found
            worst = max(worst, known, key=lambda b: b.after)
        if matching is not None:
            theirs, now = matching
            measures["journalist"] = {
                "before": matching_risks(before, theirs),
                "after": matching_risks(after, now),
            }
            if adversary.name == "journalist":
                worst = _journalist(grouping, theirs, now)
        if estimated is not None:
            measures["estimated"] = estimated[2]
            if matching is None and adversary.name == "journalist":
                worst, kind = _estimated(grouping, estimated[0], estimated[1]), ESTIMATED
        if self.unique_sets and own.rows is None:  # sets of attributes are counted by rows
            measures["singled_out"] = self._uniques(grouping, before)
        limit = _limit(target)
        published = int(measures["after"]["people"])
        smallest, people = _people_by_size(after, own.after)
        vulnerable = int(people[smallest * limit.numerator < limit.denominator].sum())
        measures |= {
            "threshold": limit,
            "vulnerable_people": vulnerable,
            "vulnerable_share": Fraction(vulnerable, published) if published else Fraction(0),
            "dropped_people": dropped_people(target.grouping),
            "dropped_for_missing_values": grouping.summary.dropped_missing,
        }
        return Beliefs(self.name, adversary.name, kind, worst, measures)

    def _uniques(self, grouping: Grouping, sizes: Ints) -> dict[str, Any]:
        """Which combinations of attributes single people out: in the raw table, and by published labels."""
        names = [h.attribute for h in grouping.summary.attributes]
        labels = np.array([x.of_group for x in grouping.labels]).reshape(len(names), -1)
        raw = minimal_uniques(names, grouping.summary.codes, sizes, self.unique_sets)
        published = minimal_uniques(names, labels, grouping.classes.sizes, self.unique_sets)
        return {"before": raw.measures(), "after": published.measures()}


def _prosecutor(grouping: Grouping, before: Ints) -> Belief:
    after = grouping.classes.sizes
    smallest = int(np.argmin(after))
    why = "they share one class, and nothing in the release tells them apart"
    if after[smallest] == 1:
        why = "nobody else is published with these values"
    return Belief(
        before=Fraction(1, int(before.min())),
        after=Fraction(1, int(after[smallest])),
        whom=people_in_words(grouping, smallest),
        why=why,
    )


def _journalist(grouping: Grouping, before: Ints, after: Ints) -> Belief:
    smallest = int(np.argmin(after))
    return Belief(
        before=Fraction(1, int(before.min())),
        after=Fraction(1, int(after[smallest])),
        whom=people_in_words(grouping, smallest),
        why=f"{int(after[smallest])} of the population match this class, and any of them may be meant",
    )


def _estimated(grouping: Grouping, before: Floats, after: Floats) -> Belief:
    """The journalist without a list of the population."""
    worst = int(np.argmax(after))
    why = "how many of the population match this class is estimated from the sample (individual risk)"
    first, last = (Fraction(float(risk)) for risk in (before.max(), after[worst]))
    return Belief(before=first, after=last, whom=people_in_words(grouping, worst), why=why)


def _matching_people(target: Target, grouping: Grouping) -> tuple[Ints, Ints] | None:
    """The people of the population who match each raw tuple, and each published class; None where that is not known.

    Whoever is in the table belongs to the population too, even where the population table misses somebody.
    """
    census = target.census
    if census is None or grouping.levels is None:
        return None
    attributes, codes = grouping.summary.attributes, grouping.summary.codes
    raw = count_matches(census, [h.levels[0].blocks for h in attributes], codes)
    now = furnished_classes(grouping, frozenset({"population"}), census).population
    if now is None:
        return None
    return np.maximum(raw, grouping.summary.tuple_sizes), np.maximum(now, grouping.classes.sizes)


def matching_risks(sizes: Ints, people: Ints) -> dict[str, Any]:
    """Journalist and marketer risk of classes of these sizes that match so many people of the population."""
    kinds, number = np.unique(people, return_inverse=True)
    mine = np.bincount(number.reshape(-1), weights=sizes, minlength=len(kinds)).astype(np.int64)
    total = sum(
        (Fraction(int(n), int(p)) for n, p in zip(mine.tolist(), kinds.tolist(), strict=True)), Fraction(0)
    )
    return {
        "smallest_match": int(people.min()),
        "highest": Fraction(1, int(people.min())),
        "marketer": total / int(sizes.sum()),
    }


def _limit(target: Target) -> Fraction:
    """Beyond this chance a person is vulnerable: one over the policy's k; where it asks for none, 1/2."""
    k = max((model.least_size(target.context) for model in target.models), default=1)
    return Fraction(1, k) if k > 1 else HALF


def _known_visits(target: Target) -> int:
    """How many visits of somebody may be known; 0: one, and nothing links it to others."""
    design = target.design
    return (
        0 if design is None or (design.known < 2 and not design.linked) else max(design.known, design.linked)
    )


def _by_known_visits(grouping: Grouping, events: int) -> tuple[Belief, list[dict[str, Any]]]:
    """The chance to find somebody of whom so many visits are known, and figures for each number of visits."""
    levels = list(known_levels(grouping, events))
    figures = [
        {"visits": level.visits or "every", "smallest_match": level.fewest, "people_found": level.found}
        for level in levels
    ]
    known = min(levels[:-1], key=lambda level: level.fewest)
    why = f"{known.fewest} people have {'these' if known.visits > 1 else 'this'} among their visits"
    whom = f"somebody of whom {known.visits} visit{'s are' if known.visits > 1 else ' is'} known"
    first = Fraction(1, int(grouping.summary.tuple_sizes.min()))
    return Belief(first, Fraction(1, known.fewest), whom, why), figures


@dataclass(frozen=True, eq=False)
class _OwnClasses:
    """Where people have several rows: the size of the smallest class of each person, before and after.

    `rows` is the chance that a row of a class, drawn at random, is one of the person's, at worst. None: all of them
    have one row.
    """

    before: Ints | None = None
    after: Ints | None = None
    rows: Belief | None = None


def _own_classes(grouping: Grouping) -> _OwnClasses:
    summary = grouping.summary
    cells = summary.personal
    if cells is None or cells.people is None:
        return _OwnClasses()
    owned = OwnedRows.of(grouping)
    raw = numbered_values(cells.people * summary.n_tuples + cells.tuples)
    held = exact_bincount(raw[1], cells.rows, len(raw[0]))
    tuples = raw[0] % summary.n_tuples
    first = _largest_ratio(held, summary.rows[tuples])
    top = int(np.argmax(owned.rows / owned.sizes[owned.group]))
    r, n = int(owned.rows[top]), int(owned.sizes[owned.group[top]])
    belief = Belief(
        first, Fraction(r, n), f"somebody with {r} of the {n} rows with {in_words(grouping, int(owned.group[top]))}",
        "a row of the class, drawn at random, is one of theirs this often",
    )  # fmt: skip
    before = _smallest_of_each(raw[0] // summary.n_tuples, summary.tuple_sizes[tuples])
    return _OwnClasses(before, _smallest_of_each(owned.person, grouping.classes.sizes[owned.group]), belief)


def _largest_ratio(numerators: Ints, denominators: Ints) -> Fraction:
    """The largest of the fractions of two lists of whole numbers, exactly."""
    about = numerators / denominators
    near = about >= about.max() - 1e-12
    radix = int(denominators.max()) + 1
    pairs = np.unique(numerators[near] * radix + denominators[near])
    return max(Fraction(pair // radix, pair % radix) for pair in pairs.tolist())


def _smallest_of_each(people: Ints, sizes: Ints) -> Ints:
    """The least of the sizes of each person who occurs."""
    order = np.argsort(people, kind="stable")
    return np.minimum.reduceat(sizes[order], np.flatnonzero(np.diff(people[order], prepend=-1)))


def _people_by_size(sizes: Ints, own: Ints | None) -> tuple[Ints, Ints]:
    """Sizes of classes, and how many people are in one of this size; `own`: of each person the smallest class."""
    if own is None:
        return sizes, sizes
    kinds, people = np.unique(own, return_counts=True)
    return kinds, people


def _class_risks(sizes: Ints, own: Ints | None = None) -> dict[str, object]:
    """Re-identification risks of classes of these sizes (people); `own`: of each person the smallest class."""
    kinds, counts = _people_by_size(sizes, own)
    people, smallest = int(counts.sum()), int(sizes.min())
    unique = int(counts[kinds == 1].sum())
    found = zip(counts.tolist(), kinds.tolist(), strict=True)
    chances = len(sizes) if own is None else sum((Fraction(n, size) for n, size in found), Fraction(0))
    return {
        "classes": len(sizes),
        "people": people,
        "smallest_class": smallest,
        "highest": str(Fraction(1, smallest)),
        "average": str(Fraction(chances) / people),
        "unique": unique,
        "unique_share": unique / people,
        "sizes": _size_histogram(kinds, counts),
    }


EDGES = (1, 2, 3, 5, 10, 20, 50, 100, 1000)


def _size_histogram(sizes: Ints, people: Ints) -> list[dict[str, object]]:
    """The number of people by the size of their class."""
    result: list[dict[str, object]] = []
    for low, high in zip(EDGES, (*EDGES[1:], None), strict=True):
        inside = (sizes >= low) & (sizes < high) if high else sizes >= low
        text = str(low) if high == low + 1 else f"{low}-{high - 1}" if high else f"{low}+"
        result.append({"size": text, "people": int(people[inside].sum())})
    return result


def sampled_risks(target: Target, grouping: Grouping) -> tuple[Floats, Floats, dict[str, Any]] | None:
    """The estimated risk of each raw tuple and of each published class, and figures; None: no population is known."""
    sample, summary = target.context.sample, grouping.summary
    if sample is None:
        return None
    before = _classes(
        sample, summary.codes, summary.codes == 0, summary.tuple_sizes, summary.weights, summary.n_people
    )
    labels = [x.of_group for x in grouping.labels]
    lost = [np.array([text is None for text in x.texts])[x.of_group] for x in grouping.labels]
    weights = None if summary.weights is None else class_weights(grouping, summary.weights)
    after = _classes(
        sample, np.array(labels), np.array(lost), grouping.classes.sizes, weights, grouping.classes.n_people
    )
    then, now = before.risks(), after.risks()
    measures: dict[str, Any] = {
        "population": sample.as_dict() | {"fraction": sample.people / sample.size},
        "before": before.figures(then),
        "after": after.figures(now),
        "accuracy": KNOWN_ACCURACY,
    }
    if (homes := summary.households) is not None:
        for when, risks in (("before", then), ("after", _of_tuples(grouping, now))):
            found = household_figures(risks[homes.tuples], homes.people, homes.rows, homes.n_people)
            measures[when]["households"] = found
    return then, now, measures


def _classes(
    sample: Sample,
    codes: NDArray[Any],
    missing: NDArray[np.bool_],
    sizes: Ints,
    weights: Floats | None,
    n_people: int,
) -> SampledClasses:
    """Classes with the people of the sample who match them, and those whom these stand for."""
    stand_for = sample.stands_for(sizes) if weights is None else weights
    if not sample.wildcard:
        return SampledClasses(sizes, sizes, stand_for, sample.size, n_people)
    people, more = wildcard_totals(codes, missing, sizes, stand_for)
    return SampledClasses(sizes, people, more, sample.size, n_people)


def _of_tuples(grouping: Grouping, risks: Floats) -> Floats:
    """The mean risk of the rows of each tuple: that of their classes, and 0 of rows that are not published."""
    allocation = grouping.allocation
    kept = allocation.groups >= 0
    parts = risks[allocation.groups[kept]] * allocation.rows[kept]
    found = weight_totals(allocation.tuples[kept], parts, grouping.summary.n_tuples)
    return np.asarray(found / grouping.summary.rows, dtype=np.float64)
