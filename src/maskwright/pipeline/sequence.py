"""Sequences: a release that follows earlier ones, whose people keep the set of values that they were published with.

The method decides the groups (`methods/_rows/lasting_groups.py`); here people are known again by a column, the register
of signatures is carried from release to release in `private/`, and counterfeits are added to what is published: rows
without quasi-identifiers. From there on the release is made, recounted and attacked like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.sequence_place import Register, SequencePlace, Signature, Texts
from maskwright.engines.base import Table
from maskwright.engines.readers.frames import text_frame
from maskwright.errors import InputError, NotVerified, PolicyError, UsageError
from maskwright.folder.store import MANIFEST, PRIVATE, PUBLIC, read_json
from maskwright.kernels.randomness import keyed_digest, random_generator
from maskwright.methods._rows.lasting_groups import LastingGroup, lasting_groups
from maskwright.pipeline.job import Job, engine_of
from maskwright.pipeline.random_keys import Chance
from maskwright.policy.binding import check_columns, method_of, models_of, reading_options
from maskwright.policy.policy import Policy
from maskwright.runtime.events import Progress
from maskwright.verification.verify import file_hash

REGISTER = "sequence.json"


@dataclass(frozen=True, eq=False)
class Sequel:
    """The place of a release in a sequence.

    Attributes:
        source: the table as it was given.
        given: for the method (`Task.given`).
        place: who is in it, and the register of everybody.
        counterfeits: rows that are nobody's.
        beliefs: of whoever has all releases; None: it is the first.
    """

    source: Any
    given: Mapping[Texts, Sequence[int]]
    place: SequencePlace
    counterfeits: int
    beliefs: Beliefs | None

    def as_dict(self) -> dict[str, Any]:
        """For `private/`."""
        place, register = self.place, self.place.register
        numbers = {s: i for i, s in enumerate(dict.fromkeys(s for _, s in register.people.values()))}
        return {
            "releases": register.releases,
            "column": register.column,
            "signatures": [list(s) for s in numbers],
            "register": {p: [value, numbers[s]] for p, (value, s) in register.people.items()},
            "quasi_identifiers": list(place.names),
            "people": [[person, *texts] for person, texts in place.people],
            "counterfeits": self.counterfeits,
        }


def in_sequence(job: Job, progress: Progress) -> Job:
    """The job with its table as it is to be published in a sequence; as it is where the method does not ask for one."""
    method = method_of(job.policy)
    person = method.lasting_by()
    if person is None:
        if job.after is not None:
            raise PolicyError(
                "--after: releases that follow others need a method whose groups last: {name: anatomy, l: 3, person: "
                "patient_id} with the column that tells people apart, and recoding: bucketize"
            )
        return job
    _refuse_unfit(job, person)
    before = None if job.after is None else _register_of(job.after)
    column, names = job.policy.sensitive[0], job.policy.quasi_identifiers
    if before is not None and before.column != column:
        raise UsageError(f"--after: the earlier releases are about {before.column!r}, not about {column!r}")
    engine = engine_of(job)
    try:
        opened = engine.open(job.source, reading_options(job.policy))
        check_columns(job.policy, opened)
        columns = list(dict.fromkeys([*job.policy.columns, person]))
        _refuse_missing_person(opened, person)
        texts = {n: list(found) for n, found in engine.row_texts(opened, columns)[0].items()}
        chance, fingerprint, caller = Chance.of(job.seed), engine.fingerprint(opened), opened.caller
        unnamed = [c.name for c in opened.columns if c.name not in columns]
    finally:
        engine.close()
    if unnamed:
        progress.note(f"columns that are not in the policy are dropped: {', '.join(unnamed)}")
    who, values = texts[person], texts[column]
    _refuse_bad_people(who, values, person, column, before)
    known = {} if before is None else before.people
    last = "" if job.after is None else file_hash(job.after / PUBLIC / MANIFEST)
    key = keyed_digest(chance.secret, "maskwright sequence 1", fingerprint, last, job.policy.to_yaml())
    options: dict[str, Any] = {}
    if known and getattr(method, "newcomers", "") == "alone":
        options = {"newcomers": "alone", "domain": _declared(job.policy, column, method.l)}  # type: ignore[attr-defined]
    groups = lasting_groups(
        values, [known[p][1] if p in known else None for p in who], method.l, random_generator(key, "groups"),  # type: ignore[attr-defined]
        **options,
    )  # fmt: skip
    people = dict(known) | {who[i]: (values[i], g.signature) for g in groups for i in g.people}
    register = Register(1 + (before.releases if before else 0), column, people)
    keys = list(zip(*(texts[n] for n in names), strict=True))
    given, false = _published(groups, keys, values)
    sequel = Sequel(
        job.source, given, SequencePlace(register, list(zip(who, keys, strict=True)), names), sum(false.values()),
        None if before is None else beliefs_over_all(groups, who, register, known),
    )  # fmt: skip
    _tell(sequel, sum(p not in known for p in who), groups, progress)
    extra = [(None, value) for value, n in sorted(false.items()) for _ in range(n)]
    rows = {
        n: [*found, *(value if n == column else None for _, value in extra)] for n, found in texts.items()
    }
    return replace(job, source=text_frame(rows, caller), sequel=sequel)


def _published(
    groups: Sequence[LastingGroup], keys: Sequence[Texts], values: Sequence[str]
) -> tuple[dict[Texts, list[int]], Counter[str]]:
    """The groups of the rows of each kind, counterfeits among them, and the counterfeits by value."""
    given: dict[Texts, list[int]] = {}
    false: Counter[str] = Counter()
    nobody = (None,) * (len(keys[0]) if keys else 0)
    for number, group in enumerate(groups):
        held = {values[i] for i in group.people}
        for i in group.people:
            given.setdefault((*keys[i], values[i]), []).append(number)
        for value in group.signature:
            if value not in held:
                given.setdefault((*nobody, value), []).append(number)
                false[value] += 1
    return given, false


def beliefs_over_all(
    groups: Sequence[LastingGroup],
    who: Sequence[str],
    register: Register,
    known: Mapping[str, tuple[str, Signature]],
) -> Beliefs:
    """What whoever has all releases believes: one over the size of the signature, if signatures have lasted.

    That they have is looked at again here, and not taken from the search.
    """
    for group in groups:
        for i in group.people:
            value, signature = known.get(who[i], (None, group.signature))
            if signature != group.signature or (value or signature[0]) not in signature:
                raise NotVerified("somebody is in a group with other values than before")
    shortest = min((g for g in groups if g.people), key=lambda g: len(g.signature))
    among = Counter(value for value, _ in register.people.values())
    most = Fraction(among.most_common(1)[0][1], len(register.people))
    worst = Belief(
        most, Fraction(1, len(shortest.signature)), "everybody with a signature of that size",
        "the values of everybody's group are the same in all releases, each once, so all of them together reveal no "
        "more than the first",
    )  # fmt: skip
    return Beliefs(
        "intersection", "knows-method", "exact", worst,
        {"releases": register.releases, "people": {"known": "listed", "in_any": len(register.people)},
         "counterfeits": sum(g.counterfeits for g in groups), "certain_people": 0,
         "in_several_tables": [register.column]},
    )  # fmt: skip


def _tell(sequel: Sequel, fresh: int, groups: Sequence[LastingGroup], progress: Progress) -> None:
    register, people = sequel.place.register, sequel.place.people
    if register.releases > 1:
        gone = len(register.people) - len(people)
        progress.note(
            f"release {register.releases} of a sequence: {fresh:,} of {len(people):,} people are new, "
            f"{gone:,} of earlier ones are not in it"
        )
    if sequel.counterfeits:
        several = sum(1 for g in groups if g.counterfeits)
        progress.note(
            f"{sequel.counterfeits:,} counterfeits in {several:,} of {len(groups):,} groups: rows without "
            "quasi-identifiers whose values are nobody's; their number is published"
        )


def _register_of(folder: Path) -> Register:
    """The register that an earlier release keeps in `private/`."""
    place = kept_place(folder / PRIVATE)
    if place is None:
        raise InputError(
            f"--after: {str(folder)!r} has no {PRIVATE}/{REGISTER}: only a release that was made with a method with "
            "`person`, and --keep-private all, can be followed by another"
        )
    return place.register


def kept_place(private: Path) -> SequencePlace | None:
    """The place in a sequence of a release that kept its `private/`; None: it is of no sequence."""
    if not (private / REGISTER).is_file():
        return None
    said = _kept_as_written(private)
    try:
        signatures = [tuple(map(str, s)) for s in said["signatures"]]
        people = {str(p): (str(value), signatures[number]) for p, (value, number) in said["register"].items()}
        register = Register(int(said["releases"]), str(said["column"]), people)
        inside = [(str(person), tuple(texts)) for person, *texts in said["people"]]
        return SequencePlace(register, inside, tuple(said["quasi_identifiers"]))
    except (LookupError, TypeError, ValueError, AttributeError):
        path = private / REGISTER
        raise InputError(f"--after: {str(path)!r} does not hold what was written there") from None


def _kept_as_written(private: Path) -> dict[str, Any]:
    """What `private/` keeps of a sequence; refused when it was changed: nothing is proven of other signatures."""
    path, said = private / REGISTER, read_json(private / REGISTER)
    files = read_json(private / MANIFEST).get("files")
    if not isinstance(files, dict) or files.get(REGISTER) != file_hash(path):
        raise InputError(
            f"{str(path)!r} was changed since it was written; restore the folder of the release from a copy"
        )
    return said


def _declared(policy: Policy, column: str, least: int) -> tuple[str, ...]:
    declared = policy.columns[column].order
    if declared is None or len(declared) < least:
        raise PolicyError(
            f"newcomers: alone draws counterfeits from values that are declared beforehand: give columns.{column} an "
            f"`order` that lists at least {least}"
        )
    return declared


def _refuse_unfit(job: Job, person: str) -> None:
    """Refuse what a sequence does not know how to publish."""
    policy = job.policy
    column = policy.columns.get(person)
    about_keys = [m.name for m in models_of(policy) if m.about != "sensitive"]
    reasons = {
        "recoding: bucketize is needed, where a group shows its values and no row does": policy.recoding.name
        != "bucketize",
        "exactly one sensitive column, not multivalued, is needed": len(policy.sensitive) != 1
        or bool(policy.columns[policy.sensitive[0]].multivalued),
        f"column {person!r} tells people apart, so its role must be identifier": column is not None
        and (column.role != "identifier" or column.publish is not None),
        "insensitive columns would tell rows of a group apart; leave them out": bool(
            policy.with_role("insensitive")
        ),
        "every person must have one row, and `unit` says that people have several; make a table with one row per "
        "person, or releases without `person`, which intersection attacks together": policy.person_column is not None,
        "prepare, weight, household, population and shift_dates are not known here": bool(
            policy.prepare or policy.weight or policy.household or policy.population or policy.shift_dates
        ),
        "missing: {rows: drop} would drop counterfeits, which have no quasi-identifiers; keep them": policy.missing.rows
        == "drop",
        f"{', '.join(about_keys)} would count counterfeits as people; require diversity or belief": bool(about_keys),
        "it is made by the DuckDB engine": job.engine == "spark",
    }  # fmt: skip
    for reason, there in reasons.items():
        if there:
            raise PolicyError(f"method.person: for releases that follow each other, {reason}")


def _refuse_missing_person(opened: Table, person: str) -> None:
    if person not in {c.name for c in opened.columns}:
        raise InputError(f"method.person: the table has no column {person!r}")


def _refuse_bad_people(
    who: Sequence[str | None],
    values: Sequence[str | None],
    person: str,
    column: str,
    before: Register | None,
) -> None:
    """Refuse people who cannot be told apart, have no value, or another one than before; nobody is named."""
    if absent := sum(p is None for p in who):
        raise InputError(
            f"column {person!r} is missing in {absent:,} rows: nobody can tell whose they are; complete it"
        )
    if repeated := len(who) - len(set(who)):
        raise InputError(f"column {person!r} repeats in {repeated:,} rows: every person must have one row")
    if absent := sum(v is None for v in values):
        raise InputError(
            f"column {column!r} is missing in {absent:,} rows; complete it, or leave these people out"
        )
    known = {} if before is None else before.people
    changed = sum(p in known and known[p][0] != v for p, v in zip(who, values, strict=True) if p is not None)
    if changed:
        raise InputError(
            f"column {column!r}: {changed:,} people have another value than in an earlier release. What is proven of a "
            "sequence is about values that stay; leave these people out, or begin a new sequence (without --after), "
            "which is then a release of its own about the same people"
        )
