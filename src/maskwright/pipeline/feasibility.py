"""Feasibility: what a bound on the share of a value leaves to choose from, told before the search.

Everything here follows from the histogram of the whole table, the number of rows and the policy; never from which rows
hold a value. A policy that no release can meet, whatever is left out, is refused in advance, which changes nothing of
what is published. Where a bound is so near the share that everybody holds together that hardly a cut can keep it, the
search would end with one class, or a few: that is told, with the nearest bound that leaves room.

The measure of room is a number of classes. A part of m rows, drawn at random from n of which c hold a value, holds X of
them, which is hypergeometric; both halves of a group keep the bound with a chance of at least 1 − 2·Σ P(X > bound·m),
summed over the values (exactly that for one value and the whole table). As many halvings as are kept more likely
than not, so many times the classes double. Quasi-identifiers that go together with the values leave less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from maskwright.domain.exact import text_of
from maskwright.domain.method import Method, Task
from maskwright.domain.model import Context, Model
from maskwright.domain.rules import ShareAtMost
from maskwright.domain.unmet_requirements import unmet_requirement
from maskwright.domain.value_sets import PRESENT
from maskwright.errors import PolicyNotMet
from maskwright.models.belief import BeliefAtMost
from maskwright.policy.calibration import calibrated_models, diversity_of

ENOUGH = 8  # classes: a bound that leaves fewer, where many more could be made, is worth a word
LIKELY = 0.5  # a cut that is kept with less is not counted on
NEGLIGIBLE = 1e-9
STEPS = 24  # of the search for the nearest bound: a share to seven digits
TRIED = 60  # settings, the odds of each 1/20 larger than those of the one before
WIDER = Fraction(3, 2)  # the odds of a rounder bound are at most so many times those of the nearest


@dataclass(frozen=True)
class Holders:
    """The histogram of an attribute as far as a bound concerns it.

    Attributes:
        people: in the table.
        counts: how many of them hold each value, or any value of each set; the most first.
        names: what the first of them is, in words.
    """

    people: int
    counts: tuple[int, ...]
    names: str

    @property
    def most(self) -> int:
        """The rows of the most frequent value."""
        return self.counts[0] if self.counts else 0

    def sentence(self) -> str:
        """One person in 4.02 holds … (7,508 of 30,162)."""
        of = f"({self.most:,} of {self.people:,})"
        if 2 * self.most > self.people:
            return f"{100 * self.most / self.people:.3g} % of the people hold {self.names} {of}"
        return f"one person in {self.people / self.most:.3g} holds {self.names} {of}"

    def without(self, rows: int) -> Holders:
        """The best that leaving out so many rows can do: each of them holds whatever is in question."""
        return Holders(self.people - rows, tuple(max(0, c - rows) for c in self.counts), self.names)


@dataclass(frozen=True)
class Bound:
    """A requirement that bounds the share of a value.

    Attributes:
        model: the requirement as the policy has it.
        share: the largest share that it allows, or that the method needs for it.
        searched: does the method search for it?
        holders: who holds the values.
        by: what the method needs for it, in words, where that is something else.
    """

    model: Model
    share: Fraction
    searched: bool
    holders: Holders
    by: str = ""

    def in_words(self) -> str:
        """The requirement as a user wrote it."""
        setting = self.model.share_setting
        value = text_of(getattr(self.model, setting))
        about = f" of {self.model.attribute_name()}" if self.model.attribute_name() else ""
        return f"{self.model.name}{about} with {setting}: {value}{self.by}"


def bounds_of(models: Sequence[Model], method: Method, context: Context) -> Iterator[Bound]:
    """The bounds on shares in a policy of values that somebody holds: of others any number of classes keeps them.

    A diversity that was added for a belief counts as that belief's.
    """
    added = {id(m) for m in added_models(models, method)}
    for model in models:
        if id(model) in added or not model.share_setting:
            continue
        wanted = diversity_of(model, method, models) if isinstance(model, BeliefAtMost) else None
        used, by = model, ""
        if wanted is not None and wanted in models:
            used = wanted
            if wanted.kernel(context) != model.kernel(context):
                every = " of every value" if wanted.sets is None else ""
                by = f" (for which {method.name} needs l-diversity with l = {text_of(wanted.l)}{every})"
        for rule in used.kernel(context) or ():
            cap = rule.cap
            if cap is None or cap.attribute not in context.reference or cap.share >= 1:
                continue
            holders = holders_of(cap, context)
            if holders.most:
                yield Bound(model, cap.share, used.use == "search", holders, by)


def added_models(models: Sequence[Model], method: Method) -> list[Model]:
    """The models at the end that requirements on belief brought with them."""
    wanted = [diversity_of(m, method, models) for m in models if isinstance(m, BeliefAtMost)]
    end = len(models)
    while end and models[end - 1] in wanted:
        end -= 1
    return list(models[end:])


def holders_of(rule: ShareAtMost, context: Context) -> Holders:
    """Who holds what a rule is about, in the whole table."""
    totals, values = context.reference[rule.attribute], context.domains[rule.attribute]
    sets = rule.sets if rule.sets is not None else tuple((code + 1,) for code in range(len(values)))
    counted = sorted(((int(totals[list(s)].sum()), s) for s in sets if s), key=lambda x: (-x[0], x[1]))
    names = ""
    if counted:
        held = [values[code - 1] for code in counted[0][1]]
        if held == [PRESENT] and any(rule.attribute in column.bits for column in context.sets):
            held = [rule.attribute]
        more = f" or {len(held) - 2} more" if len(held) > 2 else ""
        names = " or ".join(map(repr, held[:2])) + more
    return Holders(context.n_people, tuple(c for c, _ in counted), names)


def refuse_impossible(task: Task, method: Method, models: Sequence[Model]) -> None:
    """Raise `PolicyNotMet` where no release of this table can satisfy a model, whatever is left out."""
    table, summary = method.for_one_table(), task.summary
    dropped = table.most_left_out(task)
    if dropped is None or dropped >= summary.n_rows or not summary.rows_are_people:
        return
    for bound in bounds_of(models, table, task.context):
        least = bound.holders.without(dropped)
        if least.most > bound.share * least.people:
            spared = f" (whichever {dropped:,} rows are left out)" if dropped else ""
            raise PolicyNotMet(
                f"{bound.in_words()} cannot be kept: {bound.holders.sentence()}, so some class breaks it"
                f"{spared}; {_offer(task, table, models, bound)}"
            )
    if dropped == 0:
        _refuse_as_one_class(task, models)


def _refuse_as_one_class(task: Task, models: Sequence[Model]) -> None:
    """Where classes may be merged without harm, what all rows together fail no classes of them satisfy."""
    whole = task.summary.totals()
    for model in models:
        if not (model.merge_safe and model.is_local()) or model.needs() or model.share_setting:
            continue
        verdict = model.check(whole, task.context)
        if not verdict.ok:
            where = "even with all rows in one group"
            raise unmet_requirement(model, verdict, whole, task.context, where)


def room_warnings(task: Task, method: Method, models: Sequence[Model]) -> list[str]:
    """What to say before the search: bounds that leave no room for classes, or hardly any."""
    table, found = method.for_one_table(), []
    if not table.decisions().shaped_by_bounds or not task.summary.rows_are_people:
        return []
    for bound in bounds_of(models, table, task.context):
        if not bound.searched:
            continue
        room, most = _room(task, table, bound.holders, bound.share), _most_classes(task)
        if room >= _enough(most):
            continue
        held = bound.holders.sentence()
        if room == 0:
            expect = (
                f"leaves no room: {held}, more than it allows: only leaving out the right rows could keep it"
            )
        elif room == 1:
            expect = (
                f"leaves no room: {held}, so even halves drawn at random are likely to break it and everybody may "
                "end in one class"
            )
        else:
            expect = f"leaves hardly any room: {held}, so about {room} classes are to be expected"
        found.append(f"{bound.in_words()} {expect}; {_offer(task, table, models, bound)}")
    return found


def _most_classes(task: Task) -> int:
    """How many classes halvings make under the sizes alone that the models ask for."""
    return 1 << max(0, (task.summary.n_rows // _least(task)).bit_length() - 1)


def _enough(most: int) -> int:
    """How many classes are room enough where so many could be made without a bound: few of a small table."""
    return min(most, ENOUGH, max(2, math.isqrt(most)))


def _least(task: Task) -> int:
    return max([2, *(model.least_size(task.context) for model in task.search)])


def _room(task: Task, method: Method, holders: Holders, share: Fraction) -> int:
    """For how many classes there is room; 0: for none, since all people together break the bound."""
    if getattr(method, "suppress", "") != "small-classes":
        # it may leave out those who are in the way
        holders = holders.without(int(getattr(method, "suppression", 0) * task.summary.n_rows))
    if holders.most > share * holders.people:
        return 0
    return room_for(holders, share, _least(task)) if method.decisions().shaped_by_bounds else 1


def room_for(holders: Holders, share: Fraction, least: int) -> int:
    """How many classes a bound is likely to leave when groups of at least so many rows are halved at random."""
    classes, rows = 1, holders.people // 2
    while rows >= least and halves_kept(holders, share, rows) >= LIKELY:
        classes, rows = 2 * classes, rows // 2
    return classes


def halves_kept(holders: Holders, share: Fraction, rows: int) -> float:
    """At least the chance that two parts of so many rows each, drawn at random, keep a bound on every value."""
    above, allowed = 0.0, math.floor(share * rows)
    for i, count in enumerate(holders.counts):
        chance = more_than(allowed, holders.people, count, rows)
        above += chance
        if above >= 1 or chance * (len(holders.counts) - i) < NEGLIGIBLE:
            break  # those that follow are held by fewer
    return max(0.0, 1 - 2 * above)


def more_than(allowed: int, people: int, holding: int, drawn: int) -> float:
    """P(X > allowed), X the number of holders among so many people drawn without replacement."""
    low, high = max(0, drawn - (people - holding)), min(holding, drawn)
    if allowed >= high:
        return 0.0
    if allowed < low:
        return 1.0
    upwards = (allowed + 1) * (people + 2) > (holding + 1) * (drawn + 1)  # beyond the mode: terms fall
    at = allowed + 1 if upwards else allowed
    term = total = math.exp(
        _log_choose(holding, at) + _log_choose(people - holding, drawn - at) - _log_choose(people, drawn)
    )
    while term > total * NEGLIGIBLE**2:
        if upwards:
            term *= (holding - at) * (drawn - at) / ((at + 1) * (people - holding - drawn + at + 1))
            at += 1
        else:
            term *= at * (people - holding - drawn + at) / ((holding - at + 1) * (drawn - at + 1))
            at -= 1
        total += term
    return min(1.0, total) if upwards else max(0.0, 1 - total)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _offer(task: Task, method: Method, models: Sequence[Model], bound: Bound) -> str:
    """The nearest setting that leaves room, in words."""
    setting = bound.model.share_setting
    found = nearest_with_room(task, method, models, bound)
    if found is None:
        return f"there is no {setting} that would suffice"
    value, room = found
    if room < 2:
        return f"{setting}: {text_of(value)} would suffice"
    return f"{setting}: {text_of(value)} leaves room for up to about {room:,} classes"


def nearest_with_room(
    task: Task, method: Method, models: Sequence[Model], bound: Bound
) -> tuple[Fraction, int] | None:
    """The nearest setting, rounded, that leaves room under this method, and for how many classes; None: there is none.

    A requirement on belief may need a smaller share than its bound, so that the setting is tried as the policy would.
    """
    wanted = _enough(_most_classes(task)) if method.decisions().shaped_by_bounds else 1
    low, high = float(bound.share), 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        fits = _room(task, method, bound.holders, Fraction(middle)) >= wanted
        low, high = (low, middle) if fits else (middle, high)
    share = Fraction(high)
    added = {id(m) for m in added_models(models, method)}
    others = [m for m in models if m is not bound.model and id(m) not in added]
    for _ in range(TRIED):
        value = round_share(share, inverse=bound.model.share_setting == "l")
        if value is None:
            return None
        update = {bound.model.share_setting: value}
        model = bound.model.model_copy(update=update)
        made = calibrated_models([*others, model], method)
        now = [b for b in bounds_of(made, method, task.context) if b.model is model]
        room = min((_room(task, method, b.holders, b.share) for b in now), default=0)
        if room >= wanted:
            return value, room
        share = _odds(share, Fraction(21, 20))
    return None


def _odds(share: Fraction, times: Fraction) -> Fraction:
    """The share with so many times the odds."""
    return times * share / (1 - share + times * share)


def round_share(share: Fraction, inverse: bool = False) -> Fraction | None:
    """A round number at or above a share, near it: 1/3, 0.4, 0.85; inverse: one in l, for l.

    None: there is none below 1.
    """
    highest = _odds(share, WIDER)
    if inverse:
        return _roundest(1 / highest, 1 / share, up=False)
    whole = _roundest(math.ceil(1 / highest), 1 / share, up=False, finest=0)
    if whole is not None and whole > 1:
        return 1 / whole
    found = _roundest(share, highest, up=True)
    return found if found is not None and found < 1 else None


def _roundest(low: Fraction | int, high: Fraction, up: bool, finest: int = 12) -> Fraction | None:
    """The multiple of the largest of …, 10, 5, 1, 0.5, 0.1, … between two numbers: the smallest one (up), or the
    largest; None: there is none with so many decimals."""
    for power in range(6, -finest - 1, -1):
        for step in (Fraction(5) * Fraction(10) ** power, Fraction(10) ** power):
            found = step * (math.ceil(low / step) if up else math.floor(high / step))
            if low <= found <= high and found > 0:
                return found
    return None
