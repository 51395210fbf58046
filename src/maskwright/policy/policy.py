"""A policy: what the publisher wants. The only configuration there is, in YAML or in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, WithJsonSchema, field_validator, model_validator

from maskwright.domain.exact import Exact, short_repr
from maskwright.domain.missing_values import Missing
from maskwright.domain.registry import is_outside, register_class
from maskwright.domain.settings import ExplainedType, Registered, Settings, did_you_mean, parse_settings
from maskwright.domain.shown import Shown
from maskwright.domain.spreadsheets import Formulas
from maskwright.domain.value_sets import SetColumn
from maskwright.errors import PolicyError
from maskwright.hierarchies import HierarchySpec
from maskwright.hierarchies.files import File
from maskwright.policy.draft import PolicyDraft
from maskwright.policy.published_column import PublishedAs, Publishing
from maskwright.policy.yaml_text import MAX_BYTES, dump_yaml, load_yaml
from maskwright.prepare import Preparation

Role = Literal["identifier", "quasi-identifier", "sensitive", "insensitive"]
ROLES: tuple[Role, ...] = ("identifier", "quasi-identifier", "sensitive", "insensitive")


def counted_roles(columns: Mapping[str, int]) -> str:
    """How many columns have which role, in words."""
    named = (
        (n, role + "s" if n > 1 and role.endswith("identifier") else role) for role, n in columns.items()
    )
    return ", ".join(f"{n} {role}" for n, role in named if n)


class Input(Settings):
    """How to read the file; whatever is left out is detected from the file itself."""

    format: Literal["csv", "parquet"] | None = None
    delimiter: str | None = Field(None, min_length=1, max_length=1, description="of a CSV file")
    quote: str | None = Field(None, min_length=1, max_length=1, description="quote character of a CSV file")
    encoding: str = Field("utf-8", description="of a CSV file: utf-8, latin-1, cp1252, utf-16 …")
    header: bool = Field(True, description="does a CSV file begin with a line of column names?")
    names: Literal["refuse", "repair"] = Field(
        "refuse", description="names of a CSV file that are empty or occur twice; repair: column3, zip_2"
    )
    sheet: str | None = Field(None, description="of an Excel workbook that has several")
    labels: bool = Field(False, description="of a Stata or SPSS file: value labels in place of the codes")


class Population(Settings):
    """Whom the data were drawn from: a table of everybody who could be in them, or only how many that are."""

    file: str | None = Field(
        None,
        description="a table with the same quasi-identifiers, CSV or Parquet; relative to the policy file",
    )
    size: int | None = Field(
        None, ge=1, description="the number of people in the population, where there is no table of them"
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> Population:
        if (self.file is None) == (self.size is None):
            raise ValueError(
                "name either a table of everybody, {file: everybody.csv}, or the number of people, {size: 100000}"
            )
        return self


class Published(Settings):
    """What is published beside the tables."""

    marginals: bool = Field(
        False,
        description="how many published rows have each original value of every quasi-identifier, rare ones merged",
    )

    @field_validator("marginals", mode="before")
    @classmethod
    def _yes_or_no(cls, value: Any) -> Any:
        return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


class Output(Settings):
    """How the release is written."""

    format: Literal["csv", "parquet"] | None = Field(None, description="default: as the input")
    formulas: Formulas = Field(
        "refuse",
        description="cells of a CSV file that a spreadsheet would run; escape: put an apostrophe before them",
    )


Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Particulars(Settings):
    """What is said about a release: on the data card what its readers need, the rest on the evidence page alone."""

    title: str | None = Field(None, description="on the data card")
    contact: str | None = Field(None, description="whom readers may ask; on the data card")
    licence: str | None = Field(None, description="what readers may do with it; on the data card")
    date: Day | None = Field(None, description="of the release, as 2026-05-31; on the data card")
    recipient: str | None = Field(None, description="to whom it is given; on the evidence page")
    purpose: str | None = Field(None, description="what for; on the evidence page")
    approved_by: str | None = Field(None, description="who approved it; on the evidence page")
    approved_on: Day | None = Field(None, description="when, as 2026-05-31; on the evidence page")

    @field_validator("date", "approved_on")
    @classmethod
    def _real_day(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                date.fromisoformat(value)
            except ValueError:
                raise ValueError(f"{value!r} is not a day; write it as 2026-05-31") from None
        return value

    @property
    def for_readers(self) -> dict[str, str]:
        """What the data card may show."""
        return self.model_dump(include={"title", "contact", "licence", "date"}, exclude_none=True)


class RareItems(Settings):
    """What somebody may know of a set: how many people must hold any few of its values (k^m-anonymity)."""

    k: int = Field(ge=2, description="people who must hold whatever may be known of somebody's set")
    m: int = Field(2, ge=1, le=5, description="how many of its values may be known")
    rare: Literal["refuse", "suppress", "merge"] = Field(
        "refuse",
        description="combinations that fewer people hold: no release; values taken out; values merged",
    )
    hierarchy: HierarchySpec | None = Field(None, description="of merge: the branches into which values go")

    @model_validator(mode="after")
    def _fits(self) -> RareItems:
        if (self.rare == "merge") != (self.hierarchy is not None):
            raise ValueError(
                "rare: merge needs a `hierarchy` of the values, e.g. {groups: [[a, b], [c]]}, and nothing else has one"
            )
        return self


class Column(Settings):
    """The role of one column, and what may be done to it."""

    role: Role
    hierarchy: HierarchySpec | None = Field(None, description="the ways to coarsen it")
    weight: Exact = Field(Fraction(1), ge=0, description="its importance in the information loss")
    levels: tuple[str, ...] | None = Field(None, description="the only levels allowed, by number or name")
    finest: str | None = Field(
        None,
        description="the finest level that is counted, by number or name: a large table needs less memory then",
    )
    order: tuple[str, ...] | None = Field(None, description="its values from lowest to highest")
    sensitive_sets: tuple[tuple[str, ...], ...] | None = Field(
        None, description="values that must not be inferred, as sets; default: each value on its own"
    )
    multivalued: str | bool = Field(
        False,
        description="each cell is a set of values: the separator of a text, or true for a column of lists",
    )
    known_items: RareItems | None = Field(
        None,
        description="of a column of sets: how many people must hold any few values that may be known of a set",
    )
    near_unique: Literal["refuse", "allow"] = Field(
        "refuse",
        description="an insensitive column that singles people out, alone or beside labels, is refused unless allowed",
    )
    direct_identifiers: Literal["refuse", "allow"] = Field(
        "refuse",
        description="a published column whose values look like names, addresses, numbers of people or free text is "
        "refused unless allowed",
    )
    publish: PublishedAs | None = Field(
        None,
        description="of an identifier, pseudonym: a keyed random text in place of each value, another one in every "
        "release; of a sensitive or insensitive column: its numbers or categories with changes",
    )
    stable: bool = Field(
        False,
        description="the same pseudonym for the same value in every release of this installation: links releases",
    )
    group: str | None = Field(
        None,
        min_length=1,
        description="columns of several tables that share stable pseudonyms (default: the name of the column)",
    )

    @model_validator(mode="before")
    @classmethod
    def _bare_role(cls, value: Any) -> Any:
        return {"role": value} if isinstance(value, str) else value

    @field_validator("multivalued", "stable", mode="before")
    @classmethod
    def _yes_or_no(cls, value: Any) -> Any:
        return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits_the_role(self) -> Column:
        single = set() if self.multivalued else {"hierarchy", "order", "sensitive_sets"}
        if self.group is not None and not self.stable:
            raise ValueError(
                "group: without stable: true every release has pseudonyms of its own, which nothing can share; add "
                "stable: true, or remove `group`"
            )
        allowed = {
            "identifier": {"publish", "stable", "group"},
            "quasi-identifier": {"hierarchy", "weight", "levels", "finest", "order", "direct_identifiers"},
            "sensitive": {"multivalued", "direct_identifiers"}
            | single
            | ({"publish"} if single else {"known_items"}),
            "insensitive": {"near_unique", "direct_identifiers", "publish"},
        }.get(self.role, set())
        for key in sorted(self.model_fields_set - {"role"} - allowed):
            what = (
                "that is multivalued"
                if self.multivalued and key != "multivalued"
                else f"with role {self.role}"
            )
            raise ValueError(f"{key!r} means nothing for a column {what}; remove it")
        if self.publish is not None and (self.publish == "pseudonym") != (self.role == "identifier"):
            what = "a pseudonym" if self.publish == "pseudonym" else "a way to change numbers"
            raise ValueError(
                f"'publish' means nothing for a column with role {self.role} where it is {what}; identifiers are "
                "published as pseudonyms, sensitive and insensitive columns changed, e.g. {round: 100}"
            )
        if self.multivalued == "":
            raise ValueError('multivalued: the separator is empty; write multivalued: ";", or true for lists')
        return self


def _as_mapping(value: Any) -> Any:
    """A requirement or method given as an object of ours becomes what the policy file would say."""
    if isinstance(value, Registered):
        if is_outside(value):
            register_class(type(value))
        return {"name": value.name, **value.options()}
    return {"name": value} if isinstance(value, str) else value


class Named(Settings):
    """A registered thing by name, with its parameters; checked against the registry by the pipeline."""

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)

    def as_policy(self, key: str) -> dict[str, Any]:
        """The mapping that a policy file holds, with the name under `key`."""
        return {key: self.name, **self.parameters}


def _requirement(value: Any) -> Any:
    value = _as_mapping(value)
    if isinstance(value, Mapping) and "model" in value:
        rest = {k: v for k, v in value.items() if k != "model"}
        return Named(name=str(value["model"]), parameters=rest)
    if isinstance(value, Mapping) and "name" in value:
        return Named(name=str(value["name"]), parameters={k: v for k, v in value.items() if k != "name"})
    if isinstance(value, Named):
        return value
    raise ValueError(f"{short_repr(value)} names no model; write {{model: k-anonymity, k: 5}}")


def _method(value: Any) -> Any:
    value = _as_mapping(value)
    if isinstance(value, Named):
        return value
    if isinstance(value, Mapping) and "name" in value:
        return Named(name=str(value["name"]), parameters={k: v for k, v in value.items() if k != "name"})
    raise ValueError(f"{short_repr(value)} names no method; write {{name: optimal-lattice}}")


Requirement = Annotated[Named, BeforeValidator(_requirement), WithJsonSchema({"type": "object"})]
MethodChoice = Annotated[Named, BeforeValidator(_method), WithJsonSchema({"type": "object"})]


class Recoding(Settings):
    """How groups become tables.

    generalise: one table, the quasi-identifiers carry the labels of their group. bucketize: a table of
    quasi-identifiers and one of sensitive values that share a group number. permute: one table in which sensitive
    values are shuffled inside the groups.
    """

    name: Literal["generalise", "bucketize", "permute"] = "generalise"
    together: tuple[tuple[str, ...], ...] = Field(
        (), description="sensitive columns that are shuffled jointly; all others each on its own"
    )
    quasi_identifiers: Literal["exact", "generalised"] = Field(
        "exact",
        description="of bucketize and permute: exact values single everybody out, whatever the groups are",
    )

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits(self) -> Recoding:
        if self.name == "generalise" and self.model_fields_set - {"name"}:
            raise ValueError(
                "`together` and `quasi_identifiers` belong to bucketize and permute; remove them"
            )
        return self

    def blocks(
        self, sensitive: Sequence[str], sets: Sequence[SetColumn] = ()
    ) -> list[tuple[str, ...]] | None:
        """The sensitive attributes whose values stay together in a row; None: all of them do.

        A column of sets stands for its bits, which are never taken apart.
        """
        if self.name == "generalise":
            return None
        bits = {s.name: s.bits for s in sets}
        lists = [[b for name in names for b in bits.get(name, (name,))] for names in self.together]
        named = {name for names in lists for name in names}
        lists += [[b for b in parts if b not in named] for parts in bits.values()]
        named |= {b for parts in bits.values() for b in parts}
        lists += [[name] for name in sensitive if name not in named]
        here = (tuple(name for name in names if name in sensitive) for names in lists)
        return [names for names in here if names]

    @property
    def exact(self) -> bool:
        """Are quasi-identifiers published as they are?"""
        return self.name != "generalise" and self.quasi_identifiers == "exact"


ONE_ROW_EACH = "none"  # as the `unit`: every row is a person


class Unit(Settings):
    """Whose rows they are, where people have several, and what is published of that."""

    column: str = Field(min_length=1, description="the column that tells persons apart")
    rows: int | None = Field(
        None,
        ge=1,
        description="the most rows that are kept of each person, drawn at random before anything is counted",
    )

    own: tuple[str, ...] = Field(
        (),
        description="quasi-identifiers that are the person's own: the same in all rows of a person, and published "
        "alike in all of them",
    )
    publish: Literal["pseudonym"] | None = Field(
        None,
        description="pseudonym: the column is published as a random text for each person, another one in every "
        "release, so that visits stay together",
    )
    events: int = Field(
        1,
        ge=1,
        le=5,
        description="the visits of a person that an adversary may know: k people must match any of somebody's sets "
        "of this many",
    )

    @field_validator("column")
    @classmethod
    def _somebody(cls, value: str) -> str:
        if value == ONE_ROW_EACH:
            raise ValueError("every row is a person: then write unit: none, without anything else")
        return value


class DateShift(Settings):
    """Dates that are moved by so many days for each person, before anything is counted, so that intervals stay."""

    columns: tuple[str, ...] = Field(min_length=1, description="of days, like 2026-05-31")
    within: int = Field(ge=1, le=3650, description="the most days that they are moved, forwards or backwards")
    weekdays: bool = Field(False, description="move them by whole weeks, so that the days of the week stay")
    person: str | None = Field(
        None, description="the column that tells persons apart (default: that of `unit`)"
    )

    @field_validator("weekdays", mode="before")
    @classmethod
    def _yes_or_no(cls, value: Any) -> Any:
        return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _some_weeks(self) -> DateShift:
        if self.weekdays and self.within < 7:
            raise ValueError("weekdays: moving by whole weeks needs within: 7 or more")
        return self


def _unit(value: Any) -> Any:
    """A unit in the shortest way of writing it: a name where there are no settings."""
    if value is None or isinstance(value, (str, int)):
        return value
    if not isinstance(value, (Mapping, Unit)):
        raise ValueError(  # noqa: TRY004 - pydantic takes no other
            f"{short_repr(value)} names no column; write unit: patient_id, or {{column: patient_id, rows: 3}}"
        )
    made = Unit.model_validate(value)
    return made.column if made == Unit(column=made.column) else made


class _DraftWhereEmpty(ExplainedType):
    """`Policy()` without anything begins a draft, to which columns and requirements are added step by step."""

    def __call__(cls: type[Any], *values: Any, **settings: Any) -> Any:  # noqa: N805
        return ExplainedType.__call__(cls, *values, **settings) if values or settings else PolicyDraft()


class Policy(Shown, Settings, metaclass=_DraftWhereEmpty):
    """A role for each column, hierarchies, requirements, method and limits."""

    version: Literal[1] = 1
    input: Input = Input()
    output: Output = Output()
    unit: Annotated[str | Unit | None, BeforeValidator(_unit)] = Field(
        None,
        description="the column that tells people apart, if they have several rows; `none`: every row is a person, "
        "though an identifier repeats; {column: patient_id, rows: 3}: with settings",
    )
    missing: Missing = Missing()
    prepare: dict[str, Preparation] = Field(
        default_factory=dict, description="how messy columns are cleaned before anything else reads them"
    )
    shift_dates: DateShift | None = Field(
        None,
        description="dates that are moved by a random number of days for each person, which keeps intervals",
    )
    population: Population | None = Field(
        None,
        description="a table is needed by k-map and delta-presence; a size is enough for estimates of risk",
    )
    weight: str | None = Field(
        None,
        description="the column of survey weights: how many people of the population each row stands for",
    )
    household: str | None = Field(None, description="the column that tells households apart, for their risk")
    columns: dict[str, Column] = Field(description="a column that is not named here is dropped")
    keep: dict[str, str] = Field(
        default_factory=dict,
        description="what must stay of a quasi-identifier: the coarsest level that it may be published at, by number "
        "or name, or `3 digits`",
    )
    require: tuple[Requirement, ...] = Field(min_length=1)
    method: MethodChoice = Named(name="optimal-lattice")
    recoding: Recoding = Recoding()
    publish: Published = Field(Published(), description="what is published beside the tables")
    about: Particulars | None = Field(None, description="title, contact, who approved it …; decides nothing")
    preset: str | None = Field(None, description="the preset this policy was made from, for the record")

    _folder: Path = PrivateAttr(default=Path())
    _path: Path | None = PrivateAttr(default=None)

    @field_validator("version", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return int(value) if isinstance(value, str) and value.isdigit() else value

    @model_validator(mode="after")
    def _sensible(self) -> Policy:
        if not self.quasi_identifiers:
            raise ValueError(
                "columns: no column has the role quasi-identifier; say which columns an attacker could know"
            )
        if self.person_column in self.columns and self.columns[self.person_column].role != "identifier":
            raise ValueError(
                f"unit: column {self.person_column!r} tells persons apart, so its role must be identifier"
            )
        for name in self.keep:
            if name not in self.quasi_identifiers:
                raise ValueError(
                    f"keep.{name}: only quasi-identifiers are coarsened, and {name!r} is not one; "
                    f"{did_you_mean(name, self.quasi_identifiers)}"
                )
        self._survey_fits()
        self._lengths_fit()
        for name in self.people.own if self.people is not None else ():
            if name not in self.quasi_identifiers:
                raise ValueError(
                    f"unit: own: names quasi-identifiers that are the same in all rows of a person, and {name!r} is "
                    f"none; {did_you_mean(name, self.quasi_identifiers)}"
                )
        self._pseudonyms_fit()
        self._shifts_fit()
        self._publishing_fits()
        self._known_items_fit()
        self._marginals_fit()
        return self

    def _known_items_fit(self) -> None:
        """Refuse to take values out of sets that are lists."""
        for name, asked in self.known_items.items():
            if asked.rare != "refuse" and self.columns[name].multivalued is True:
                raise ValueError(
                    f"columns.{name}.known_items: values are taken out of texts with a separator, not of lists"
                )

    @property
    def known_items(self) -> dict[str, RareItems]:
        """The columns of sets of which a few values may be known, and what is asked of them."""
        return {name: c.known_items for name, c in self.columns.items() if c.known_items is not None}

    def _marginals_fit(self) -> None:
        """Refuse counts of values that are published anyway, or of rows where people are counted."""
        if self.publish.marginals and self.recoding.name != "generalise":
            raise ValueError(
                f"publish: marginals are read with labels, and recoding: {self.recoding.name} has groups instead; use "
                "recoding: generalise, or remove `marginals`"
            )
        if self.publish.marginals and self.person_column is not None:
            raise ValueError(
                "publish: marginals count rows, of which people have several (`unit`), so that a count of k would not "
                "be k people; make a table with one row per person, or leave `marginals` out: the classes "
                "count people"
            )

    @property
    def shifting_person(self) -> str:
        """The column by which dates are moved."""
        given = self.shift_dates.person if self.shift_dates is not None else None
        return given or self.person_column or ""

    def _shifts_fit(self) -> None:
        """Refuse moved dates without persons, and of columns that are coarsened or not published."""
        shift = self.shift_dates
        if shift is None:
            return
        person = self.shifting_person
        if not person:
            raise ValueError(
                "shift_dates: all dates of a person are moved alike; name the column that tells persons apart, "
                "person: patient_id"
            )
        if self.person_column is not None and person != self.person_column:
            raise ValueError(
                f"shift_dates: `unit` says that {self.person_column!r} tells persons apart; remove `person`"
            )
        if person in self.columns and self.columns[person].role != "identifier":
            raise ValueError(f"shift_dates: {person!r} tells persons apart, so its role must be identifier")
        if self.recoding.name != "generalise":
            raise ValueError(
                "shift_dates: what known events tell is attacked for recoding: generalise only; use that"
            )
        for name in shift.columns:
            role = self.columns[name].role if name in self.columns else None
            if role not in ("sensitive", "insensitive") or self.columns[name].multivalued:
                raise ValueError(
                    f"shift_dates: {name!r} is {role or 'not published'}; dates are moved that stay exact to the day, "
                    "with the role sensitive or insensitive: others are coarsened by their hierarchy"
                )

    def _pseudonyms_fit(self) -> None:
        """Refuse pseudonyms beside values that are taken apart, and settings of pseudonyms that nobody publishes."""
        shown = self.pseudonyms
        if self.people is not None and self.people.publish and self.recoding.name != "generalise":
            raise ValueError(
                f"unit: a pseudonym keeps the values of a person together, which recoding: {self.recoding.name} takes "
                "apart; use recoding: generalise, or do not publish it"
            )
        if self.people is not None and self.people.events > 1 and self.recoding.name != "generalise":
            raise ValueError(
                f"unit: several known visits are matched by coarsened quasi-identifiers, and recoding: "
                f"{self.recoding.name} has groups instead; use recoding: generalise, or events: 1"
            )
        if shown and self.recoding.name != "generalise":
            raise ValueError(
                f"columns.{shown[0]}: a pseudonym tells rows apart, which recoding: {self.recoding.name} does not keep "
                "whole; use recoding: generalise, or do not publish it"
            )
        groups: dict[str, str] = {}
        for name, column in self.columns.items():
            if column.stable and name not in shown:
                raise ValueError(
                    f"columns.{name}: stable: true is about pseudonyms, and none are published; add publish: pseudonym"
                )
            if column.stable:
                other = groups.setdefault(column.group or name, name)
                if other != name:
                    raise ValueError(
                        f"columns.{name}: {other!r} has the same group, so the pseudonym of one row could be "
                        "found in another row of this table; give them different groups"
                    )

    def _lengths_fit(self) -> None:
        """Refuse a length whose dates are not kept to the day."""
        for name, step in self.prepare.items():
            for end in step.between.columns if step.between is not None else ():
                made = self.prepare.get(end)
                if made is None or (
                    made.between is None and (made.dates is None or made.dates.show == "day")
                ):
                    continue
                raise ValueError(
                    f"prepare.{name}: a length needs the days of {end!r}, of which prepare.{end} keeps less"
                )

    def _publishing_fits(self) -> None:
        """Refuse columns that cannot be published with changes, or are named twice."""
        owner: dict[str, str] = {}
        for name, column in self.columns.items():
            for other in column.publish.together if isinstance(column.publish, Publishing) else ():
                where = f"columns.{name}.publish: `with` names {other!r}, "
                if other not in self.columns or other == name:
                    known = did_you_mean(other, [c for c in self.columns if c != name])
                    raise ValueError(f"{where}which is no other column of the policy; {known}")
                if self.columns[other].role not in ("sensitive", "insensitive"):
                    raise ValueError(f"{where}whose role must be sensitive or insensitive")
                if (
                    self.columns[other].publish is not None
                    or other in owner
                    or self.columns[other].multivalued
                ):
                    raise ValueError(f"{where}which is published in another way; remove one of them")
                owner[other] = name
        if not self.perturbed:
            return
        first = next(iter(self.perturbed))
        sets = next((n for n, c in self.columns.items() if c.multivalued), None)
        if sets is not None:
            raise ValueError(
                f"columns.{first}.publish: {sets} holds sets of values, and numbers cannot be perturbed beside them; "
                "leave one of the two columns out"
            )
        if self.recoding.name != "generalise":
            raise ValueError(
                f"columns.{first}.publish: values that are published apart from their rows, by recoding: "
                f"{self.recoding.name}, cannot be perturbed as well; use recoding: generalise"
            )
        if self.person_column is not None:
            raise ValueError(
                f"columns.{first}.publish: people have several rows (`unit`), and what is drawn for each of them "
                "averages out; make a table with one row per person"
            )

    @property
    def perturbed(self) -> dict[str, Publishing]:
        """How columns are published that are not published as they are, those that are treated together included."""
        found: dict[str, Publishing] = {}
        for name, column in self.columns.items():
            if isinstance(column.publish, Publishing):
                found |= dict.fromkeys((name, *column.publish.together), column.publish)
        return {name: found[name] for name in self.columns if name in found}

    def _survey_fits(self) -> None:
        """Refuse a survey's columns that contradict something else."""
        for key in ("weight", "household"):
            name = getattr(self, key)
            if name is None:
                continue
            if self.person_column is not None:
                raise ValueError(
                    f"{key}: it counts a row for a person, and `unit` says that people have several rows; "
                    f"remove `{key}`, or make a table with one row per person"
                )
            if name in self.quasi_identifiers:
                raise ValueError(
                    f"{key}: column {name!r} is a quasi-identifier, whose values are coarsened; give a copy of it "
                    f"another name, or make it an identifier, which is not published"
                )
        if self.weight is not None and self.weight == self.household:
            raise ValueError(f"household: column {self.weight!r} holds the weights; name another column")
        if self.population is None and self.weight is None:
            asking = "household" if self.household else "missing.wildcard" if self.missing.wildcard else ""
            if asking:
                raise ValueError(
                    f"{asking}: it is about risks in the population, about which nothing is known; write "
                    "population: {size: 100000} with the real number, or name a column of survey weights: weight: …"
                )

    @property
    def folder(self) -> Path:
        """Where relative hierarchy files are looked up."""
        return self._folder

    @property
    def files(self) -> dict[str, str]:
        """The files that the policy names, by where it names them: hierarchies and the population."""
        found = {
            f"columns.{name}.hierarchy": column.hierarchy.file
            for name, column in self.columns.items()
            if isinstance(column.hierarchy, File)
        }
        census = self.population.file if self.population is not None else None
        return found | ({"population": census} if census is not None else {})

    @property
    def inputs(self) -> list[Path]:
        """The files that the policy is read from: its own, and those that it names."""
        return [*([self._path] if self._path else []), *(self.folder / file for file in self.files.values())]

    def with_files(self, change: Callable[[str], str]) -> Policy:
        """A copy of the policy in which every file that it names is written otherwise."""
        columns = {
            name: column.model_copy(
                update={
                    "hierarchy": column.hierarchy.model_copy(update={"file": change(column.hierarchy.file)})
                }
            )
            if isinstance(column.hierarchy, File)
            else column
            for name, column in self.columns.items()
        }
        population = self.population
        if population is not None and population.file is not None:
            population = Population(file=change(population.file))
        return self.model_copy(update={"columns": columns, "population": population})

    def beside(self, other: Policy) -> Policy:
        """A copy of the policy, as if read from where another one was read."""
        found = self.model_copy()
        found._folder, found._path = other._folder, other._path
        return found

    @property
    def quasi_identifiers(self) -> list[str]:
        """The quasi-identifier columns, in the order of the policy."""
        return self.with_role("quasi-identifier")

    @property
    def sensitive(self) -> list[str]:
        """The sensitive columns, in the order of the policy."""
        return self.with_role("sensitive")

    def with_role(self, role: Role) -> list[str]:
        """The columns with a role, in the order of the policy."""
        return [name for name, column in self.columns.items() if column.role == role]

    @staticmethod
    def load(source: Policy | PolicyDraft | Mapping[str, Any] | str | Path) -> Policy:
        """A policy from a file, a mapping, a draft, or as it is."""
        if isinstance(source, Policy):
            return source
        if isinstance(source, PolicyDraft):
            return source.build()
        if isinstance(source, Mapping):
            return Policy.of(source, "policy")
        path = Path(source)
        try:
            with path.open("rb") as file:
                text = file.read(MAX_BYTES + 1)  # not more than `load_yaml` would take: a device has no end
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "strerror", None) or str(problem)
            raise PolicyError(f"policy file {str(source)!r} cannot be read: {reason}") from None
        policy = Policy.of(load_yaml(text, str(path)), path.name)
        policy._folder, policy._path = path.parent, path
        return policy

    @staticmethod
    def of(values: Any, where: str) -> Policy:
        """Parse a policy from a mapping; `where` begins the message of an error."""
        if not isinstance(values, Mapping):
            raise PolicyError(
                f"{where}: a policy is a mapping with the keys version, columns, require, method"
            )
        return parse_settings(Policy, values, where)

    @property
    def person_column(self) -> str | None:
        """The column that tells persons apart; None: every row is a person."""
        return None if self.people is None else self.people.column

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The quasi-identifiers that are published alike in all rows of a person; exact ones are anyway."""
        return () if self.people is None or self.recoding.exact else self.people.own

    @property
    def people(self) -> Unit | None:
        """Whose rows they are, with all settings; None: every row is a person."""
        if self.unit is None or self.unit == ONE_ROW_EACH:
            return None
        unit = Unit(column=self.unit) if isinstance(self.unit, str) else self.unit
        column = self.columns.get(unit.column)
        hidden = column is not None and column.publish == "pseudonym"
        return unit.model_copy(update={"publish": "pseudonym"}) if hidden else unit

    @property
    def pseudonyms(self) -> list[str]:
        """The identifiers that are published as pseudonyms, that of people first."""
        linked = [self.people.column] if self.people is not None and self.people.publish else []
        others = [
            n for n, column in self.columns.items() if column.publish == "pseudonym" and n not in linked
        ]
        return linked + others

    def headline(self) -> str:
        """How many columns have which role, the requirements and the method."""
        roles = counted_roles({role: len(self.with_role(role)) for role in ROLES})
        asked = [
            f"{r.name}({', '.join(f'{k}={v}' for k, v in r.parameters.items() if k != 'use')})"
            for r in self.require
        ]
        return "; ".join([roles, *asked, self.method.name])

    def to_dict(self) -> dict[str, Any]:
        """What a policy file would say: plain values, defaults left out."""
        values: dict[str, Any] = {"version": 1}
        named = {"require", "method"}  # their parameters are not checked yet, and may be anything
        dumped = self.model_dump(mode="json", exclude_defaults=True, exclude=named, by_alias=True)
        for key in (
            "input",
            "output",
            "unit",
            "missing",
            "prepare",
            "shift_dates",
            "population",
            "weight",
            "household",
            "publish",
            "about",
            "preset",
        ):
            if key in dumped:
                values[key] = dumped[key]
        values["columns"] = {
            name: c["role"] if set(c) == {"role"} else c for name, c in dumped["columns"].items()
        }
        if self.keep:
            values["keep"] = dict(self.keep)
        values["require"] = [_plain(r.as_policy("model")) for r in self.require]
        values["method"] = _plain(self.method.as_policy("name"))
        recoding = self.recoding.model_dump(mode="json", exclude_defaults=True) | {"name": self.recoding.name}
        values["recoding"] = recoding if len(recoding) > 1 else self.recoding.name
        return values

    def to_yaml(self) -> str:
        """The policy as the text of a file."""
        return dump_yaml(self.to_dict())


AnyPolicy = Policy | PolicyDraft | Mapping[str, Any] | str | Path  # whatever `Policy.load` takes


def _plain(value: Any) -> Any:
    """Parameters as a YAML file can hold them, without losing exactness."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
