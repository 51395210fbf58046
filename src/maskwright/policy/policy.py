"""A policy: what the publisher wants. The only configuration there is, in YAML or in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, WithJsonSchema, field_validator, model_validator

from maskwright.domain.exact import Exact, short_repr
from maskwright.domain.settings import Registered, Settings, did_you_mean, parse_settings
from maskwright.domain.spreadsheets import Formulas
from maskwright.domain.value_sets import SetColumn
from maskwright.errors import PolicyError
from maskwright.hierarchies import HierarchySpec
from maskwright.hierarchies.files import File
from maskwright.policy.yaml_text import MAX_BYTES, dump_yaml, load_yaml
from maskwright.prepare import Preparation

Role = Literal["identifier", "quasi-identifier", "sensitive", "insensitive"]
ROLES: tuple[Role, ...] = ("identifier", "quasi-identifier", "sensitive", "insensitive")


class Input(Settings):
    """How to read the file; whatever is left out is found out from the file itself."""

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


class Missing(Settings):
    """What counts as missing besides empty cells, and what happens to rows that have it."""

    tokens: tuple[str, ...] = Field((), description="texts that mean missing, e.g. '?', 'NA'")
    rows: Literal["keep", "drop"] = Field(
        "keep", description="keep: missing is a value of its own; drop: leave out rows with one"
    )
    wildcard: bool = Field(
        False, description="when risks in the population are estimated, a missing value matches every value"
    )


class Population(Settings):
    """Whom the data were drawn from: a table of everybody who could be in them, or only how many that are."""

    file: str | None = Field(
        None,
        description="a table with the same quasi-identifiers, CSV or Parquet; relative to the policy file",
    )
    size: int | None = Field(
        None, ge=1, description="people of the population, where there is no table of them"
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> Population:
        if (self.file is None) == (self.size is None):
            raise ValueError(
                "name either a table of everybody, {file: everybody.csv}, or the number of people, {size: 100000}"
            )
        return self


class Output(Settings):
    """How the release is written."""

    format: Literal["csv", "parquet"] | None = Field(None, description="default: as the input")
    formulas: Formulas = Field(
        "refuse",
        description="cells of a CSV file that a spreadsheet would run; escape: put an apostrophe before them",
    )


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
    near_unique: Literal["refuse", "allow"] = Field(
        "refuse", description="an insensitive column whose values single people out is refused unless allowed"
    )

    @model_validator(mode="before")
    @classmethod
    def _bare_role(cls, value: Any) -> Any:
        return {"role": value} if isinstance(value, str) else value

    @field_validator("multivalued", mode="before")
    @classmethod
    def _yes_or_no(cls, value: Any) -> Any:
        return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits_the_role(self) -> Column:
        single = set() if self.multivalued else {"hierarchy", "order", "sensitive_sets"}
        allowed = {
            "quasi-identifier": {"hierarchy", "weight", "levels", "finest", "order"},
            "sensitive": {"multivalued"} | single,
            "insensitive": {"near_unique"},
        }.get(self.role, set())
        for key in sorted(self.model_fields_set - {"role"} - allowed):
            what = (
                "that is multivalued"
                if self.multivalued and key != "multivalued"
                else f"with role {self.role}"
            )
            raise ValueError(f"{key!r} means nothing for a column {what}; remove it")
        if self.multivalued == "":
            raise ValueError('multivalued: the separator is empty; write multivalued: ";", or true for lists')
        return self


def _as_mapping(value: Any) -> Any:
    """A requirement or method given as an object of ours becomes what the policy file would say."""
    if isinstance(value, Registered):
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


class Policy(Settings):
    """A role for each column, hierarchies, requirements, method and limits."""

    version: Literal[1] = 1
    input: Input = Input()
    output: Output = Output()
    unit: str | None = Field(
        None,
        description="the column that tells persons apart, if they have several rows; `none`: every row is a person, "
        "though an identifier repeats",
    )
    missing: Missing = Missing()
    prepare: dict[str, Preparation] = Field(
        default_factory=dict, description="what is done to messy columns before anything else reads them"
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
        return self

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
                    f"{asking}: it is about risks in the population, of which nothing is known; write "
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
    def load(source: Policy | Mapping[str, Any] | str | Path) -> Policy:
        """A policy from a file, a mapping, or as it is."""
        if isinstance(source, Policy):
            return source
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
        return None if self.unit == ONE_ROW_EACH else self.unit

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
            "population",
            "weight",
            "household",
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


def _plain(value: Any) -> Any:
    """Parameters as a YAML file can hold them, without losing exactness."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
