"""Methods that cut ordered rows: what a refused split, or a further bucket, gives away [Cormode et al. 2010].

An even-split method publishes a group undivided because a part of it violates the requirement; greedy grouping closes a
group as soon as it may. Each group tells its own story, independently of the others. Which part somebody is in follows
from the quasi-identifiers, unless several people share them: then what is computed here is the most that is believed.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from maskwright.attacks.counting import Row, overlaps
from maskwright.attacks.findings import Finding, as_shown, limit
from maskwright.attacks.refusals import Parts, looked_at_values
from maskwright.attacks.secrets import Secrets, in_words
from maskwright.attacks.thresholds import Threshold, deciding, merged_classes, thresholds_of
from maskwright.core.adversary import Target
from maskwright.core.beliefs import Belief
from maskwright.core.exact import show
from maskwright.core.guarantees import family
from maskwright.core.worlds.bounds import greedy_ceiling
from maskwright.core.worlds.credibility import credibility_each
from maskwright.core.worlds.greedy import randomised_group

BUCKETS = 100  # beyond so many the ceiling of all greedy groups is used

Shares = dict[
    int, tuple[Fraction | float, ...]
]  # group → smallest and largest credibility of the set in its parts


def cut_family(target: Target) -> str | None:
    """even-split or greedy, where the method is such and one threshold is all that it looked at; else None."""
    method = target.method
    rules = thresholds_of(looked_at_values(target.models), target.context)
    if method is None or not rules or method.options().get("anatomize"):
        return None
    if len(target.grouping.classes.sensitive) > 1:  # what one column gives away tells about the others, too
        return None
    name = family(method.name, method.options())
    if name == "even-split":
        several = deciding(rules, [halves(target)], target.grouping.classes) is None
        return None if several and len(rules) > 1 else name
    bucket = target.grouping.search.get("bucket")
    if name in ("greedy", "randomised-greedy") and len(rules) == 1 and bucket:
        fits = rules[0].share * bucket == 1 and _least(target) <= bucket
        return "greedy" if fits else None
    return None


def cut_finding(target: Target, secrets: Secrets) -> Finding:
    """The worst belief of somebody who knows the method."""
    rules = thresholds_of(looked_at_values(target.models), target.context) or []
    if cut_family(target) == "even-split":
        parts = halves(target)
        threshold = deciding(rules, [parts], target.grouping.classes)
        why = "the group was not divided, so a part of it violates the requirement"
        found = None if threshold is None else _of_halves(target, threshold, parts)
    else:
        threshold, why = (
            rules[0],
            "the group was not closed earlier, so its first buckets violate the requirement",
        )
        found = _of_buckets(target, threshold)
    if threshold is None or found is None or threshold.attribute != secrets.attribute:
        return as_shown(target, secrets, "no group can have been refused for these values")
    return _worst(target, secrets, threshold, found, why)


def halves(target: Target) -> Parts:
    """The parts that each published group was not divided into; groups too small to be divided stay whole."""
    sizes = target.grouping.classes.sizes
    ways = int(getattr(target.method, "ways", 2))
    divided = sizes // ways >= _guard(target)
    group = np.repeat(np.arange(len(sizes)), np.where(divided, ways, 1))
    first = np.repeat(
        np.cumsum(np.where(divided, ways, 1)) - np.where(divided, ways, 1), np.where(divided, ways, 1)
    )
    place, n = np.arange(len(group)) - first, sizes[group]
    even = -(-((place + 1) * n) // ways) - -(-(place * n) // ways)
    return Parts(None, "", np.zeros(0, np.int64), np.where(divided[group], even, n), group)


def _least(target: Target) -> int:
    """The fewest people of a group, by the parameters of the models alone."""
    return max((m.least_size(target.context) for m in target.models if m.use == "search"), default=1)


def _guard(target: Target) -> int:
    """The fewest people of a part; a group that would have a smaller one was not tried to be divided."""
    given = getattr(target.method, "min_child", None)
    rules = thresholds_of(looked_at_values(target.models), target.context) or []
    by_models = max([_least(target), *(math.ceil(1 / rule.share) for rule in rules)])
    return max(1, by_models if given is None else int(given))


def _of_halves(target: Target, threshold: Threshold, parts: Parts) -> Shares:
    grouped = merged_classes(threshold, parts, target.grouping.classes, _least(target))
    each = zip(grouped.groups.tolist(), grouped.merged, credibility_each(grouped.merged), strict=True)
    return {
        group: (Fraction(merged.sensitive, sum(merged.sizes)),)
        if found is None
        else (min(found.values), max(found.values))
        for group, merged, found in each
    }


def _of_buckets(target: Target, threshold: Threshold) -> Shares:
    classes, bucket = target.grouping.classes, int(target.grouping.search["bucket"])
    held = threshold.held(classes.sensitive[threshold.attribute]).tolist()
    extend = Fraction(getattr(target.method, "extend", 0))
    known: dict[tuple[int, int], tuple[Fraction | float, ...]] = {}
    shares: Shares = {}
    for group, (n, positives) in enumerate(zip(classes.sizes.tolist(), held, strict=True)):
        if (n, positives) not in known:
            known[n, positives] = _of_bucket(n, positives, bucket, extend)
        shares[group] = known[n, positives]
    return shares


def _of_bucket(n: int, positives: int, bucket: int, extend: Fraction) -> tuple[Fraction | float, ...]:
    buckets = n // bucket
    if buckets > BUCKETS:
        return Fraction(0), greedy_ceiling(bucket)
    found = randomised_group(bucket, buckets, positives, extend) if buckets > 1 else None
    return (Fraction(positives, n),) if found is None else (min(found), max(found))


def _worst(target: Target, secrets: Secrets, threshold: Threshold, shares: Shares, why: str) -> Finding:
    classes, bound = target.grouping.classes, limit(target, secrets)
    held = threshold.held(classes.sensitive[threshold.attribute]).tolist()
    overlap, worst, above = overlaps(target, secrets, threshold), None, 0
    for group, found in shares.items():
        rows = [
            Row((group,), code, share, mine, rest, held[group], int(classes.sizes[group]), 0.0)
            for code, (mine, rest) in overlap(group).items()
            for share in found
        ]
        above += int(classes.sizes[group]) * any(row.exceeds(bound) for row in rows)
        for row in rows:
            if worst is None or row.value > worst.value:
                worst = row
    if worst is None:
        return as_shown(target, secrets, "no group holds a sensitive value")
    return Finding(_in_words(target, secrets, worst, why), "bounded", above)


def _in_words(target: Target, secrets: Secrets, row: Row, why: str) -> Belief:
    shown = Fraction(row.mine + row.rest, row.people)
    whom = f"some of the {row.people} people with {in_words(target.grouping, row.parts[0])}"
    words = f"{show(shown)} of them have {secrets.name(row.code)}; but {why}"
    return Belief(secrets.before(row.code), row.exact(), whom, words)
