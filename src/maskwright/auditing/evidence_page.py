"""The evidence page: what was released, to whom, under which policy, what it was checked against, and who approved it.

Made from a release folder that was verified just before. Every line of guidance has an answer and the number that it
rests on, or *not assessed*: what a law, a contract or a committee has to answer is not answered here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from maskwright.auditing.table_check import GuidanceLine, SeenTable, guidance_lines
from maskwright.domain.beliefs import NOT_COMPUTED
from maskwright.domain.exact import number_text, to_fraction
from maskwright.domain.settings import parse_settings
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.errors import DestinationError, InputError, NotVerified
from maskwright.folder.later_files import (
    EVIDENCE,
    EVIDENCE_PAGE,
    REVEALS,
    content_seal,
    release_hash,
    write_evidence,
)
from maskwright.folder.store import MALFORMED, MANIFEST, PRIVATE, PUBLIC, is_readable, read_json
from maskwright.pipeline.gates import verify_release
from maskwright.policy.policy import Particulars, Policy
from maskwright.report.html import (
    Markup,
    bullet_list,
    folded_details,
    html_page,
    html_table,
    page_section,
    tag,
)
from maskwright.suggest.profile import look_at_all
from maskwright.verification.verify import Verification, file_hash

SOURCES = {
    "gdpr-wp216": "Article 29 Working Party, Opinion 05/2014 on Anonymisation Techniques (WP216)",
    "hipaa-safe-harbor": "HIPAA Safe Harbor, 45 CFR 164.514(b)(2)",
    "ema-clinical": "EMA policy 0070, EMA/90915/2016",
    "nist-800-188": "NIST SP 800-188 (2023), the headings of its chapters 3 and 4",
    "iso-27559": "ISO/IEC 27559:2022, the headings of its clauses 6 to 9",
}
STATED = {
    "title": "title", "contact": "contact", "licence": "licence", "date": "date", "recipient": "given to",
    "purpose": "for", "approved_by": "approved by", "approved_on": "approved on",
}  # fmt: skip
NOT_STATED = "not stated"


@dataclass(frozen=True)
class Evidence:
    """An evidence page: its content as JSON, and where its files were written."""

    content: Mapping[str, Any]
    folder: Path

    @property
    def answers(self) -> Mapping[str, int]:
        """How many lines of guidance have which answer."""
        lines = [line for lines in self.content["guidance"].values() for line in lines]
        return Counter(str(line["answer"]) for line in lines)

    def __str__(self) -> str:
        counts = ", ".join(f"{n} {answer}" for answer, n in sorted(self.answers.items()))
        return (
            f"evidence  {self.folder / EVIDENCE_PAGE}   (print it, or save it as PDF, from a browser)\n"
            f"          {self.folder / EVIDENCE}\n"
            f"lines of guidance: {counts}\nrelease   sha256 {self.content['release']}"
        )


def write_evidence_page(
    release: str | Path, stated: Mapping[str, str] | None = None, *, overwrite: bool = False
) -> Evidence:
    """Verify a release and write its evidence into `private/`; `stated` adds to what the policy says about it."""
    folder = Path(release)
    for path in (folder / PRIVATE / name for name in (EVIDENCE, EVIDENCE_PAGE)):
        if path.exists() and not overwrite:
            raise DestinationError(f"{str(path)!r} exists; use --overwrite to replace it")
    content = verified_content(folder, stated or {})
    write_evidence(folder / PRIVATE, content, evidence_html(content))
    return Evidence(content, folder / PRIVATE)


def verified_content(folder: Path, stated: Mapping[str, str]) -> dict[str, Any]:
    """Verify a release, and everything on its evidence page as JSON; an older page of it does not count."""
    if not is_readable(folder / PRIVATE / MANIFEST):
        raise InputError(
            f"{str(folder)!r} has no private/ folder that can be read, and what was attacked and measured is there; "
            "evidence is for its custodian"
        )
    checked = verify_release(folder)
    replaced = (f"{PRIVATE}/{EVIDENCE}", f"{PRIVATE}/{EVIDENCE_PAGE}")
    problems = [p for p in checked.problems if not p.startswith(replaced)]
    if problems or not all(v.ok for v in checked.verdicts):
        why = "; ".join([*problems, *(v.sentence() for v in checked.verdicts if not v.ok)])
        raise NotVerified(f"the release does not verify, so there is no evidence for it: {why}")
    return evidence_content(folder, checked, stated)


def evidence_content(folder: Path, checked: Verification, stated: Mapping[str, str]) -> dict[str, Any]:
    """Everything on the page, as JSON."""
    public, private = read_json(folder / PUBLIC / MANIFEST), read_json(folder / PRIVATE / MANIFEST)
    dictionary = read_json(folder / PUBLIC / "data-dictionary.json")
    policy = Policy.load(folder / PRIVATE / "policy.yaml")
    said = {**(policy.about.model_dump(exclude_none=True) if policy.about else {}), **stated}
    about = parse_settings(Particulars, said, "about").model_dump()
    try:
        tables = [
            {"file": t["file"], "rows": t["rows"], "columns": t["columns"], "sha256": public["files"].get(t["file"])}
            for t in public["tables"]
        ]  # fmt: skip
        seen = _Gathered(folder, public, private, dictionary, checked, policy, about)
        return {
            "format": 1,
            "product": public["product"],
            "release": release_hash(folder),
            "about": about,
            "input": private["input"],
            "people": private["people"],
            "rows": private["rows"],
            "tables": tables,
            "columns": [{"name": c["name"], "role": c["role"]} for c in dictionary["columns"]],
            "dropped": private["columns"]["dropped"],
            "policy": (folder / PRIVATE / "policy.yaml").read_text(encoding="utf-8"),
            "policy_sha256": file_hash(folder / PRIVATE / "policy.yaml"),
            "verdicts": [v.as_dict() for v in checked.verdicts],
            "promises": private["label"]["promises"],
            "attacks": [
                {"attack": b["attack"], "adversary": b["adversary"], "kind": b["kind"], **b["worst"]}
                for b in private["beliefs"]
            ],
            "metrics": private["metrics"],
            "notes": private["notes"],
            "guidance": {name: [line.as_dict() for line in seen.lines(name)] for name in SOURCES},
        }  # fmt: skip
    except MALFORMED:
        raise InputError(f"{str(folder / PRIVATE / MANIFEST)!r} is not what was written") from None


@dataclass(frozen=True)
class _Gathered:
    """A release as guidance is held against it."""

    folder: Path
    public: Mapping[str, Any]
    private: Mapping[str, Any]
    dictionary: Mapping[str, Any]
    checked: Verification
    policy: Policy
    about: Mapping[str, Any]

    def lines(self, name: str) -> Iterator[GuidanceLine]:
        """The lines of one body of guidance."""
        own = {"gdpr-wp216": self._working_party, "nist-800-188": self._nist, "iso-27559": self._iso}
        yield from own[name]() if name in own else self._of_tables(name)

    def _of_tables(self, name: str) -> Iterator[GuidanceLine]:
        """Guidance about the published tables themselves: of several, the worst answer."""
        engine = open_engine()
        try:
            every = []
            for item in self.public["tables"]:
                table = engine.open(
                    self.folder / PUBLIC / item["file"],
                    Reading.back(item["format"], bool(item.get("escaped"))),
                )
                rows = engine.count(table)
                facts = {f.name: f for f in look_at_all(engine, table, table.columns, rows)}
                every.append(SeenTable(rows, facts, self.policy.quasi_identifiers, self.smallest))
        finally:
            engine.close()
        order = ("not met", "not assessed", "met")
        for lines in zip(*(guidance_lines(name, seen) for seen in every), strict=True):
            yield min(lines, key=lambda line: order.index(line.answer))

    @property
    def smallest(self) -> int | None:
        """People in the smallest class, as it was recounted; None: no requirement counts them."""
        sizes = [
            v for v in self.checked.verdicts if v.model == "k-anonymity" and v.parameters.get("on") is None
        ]
        return min((int(v.worst) for v in sizes if v.worst is not None), default=None)

    @property
    def attacks(self) -> list[Mapping[str, Any]]:
        """The attacks, the worst belief first."""
        return list(self.private["beliefs"])

    @property
    def values(self) -> list[Mapping[str, Any]]:
        """Those that computed a belief in a sensitive value."""
        return [
            b
            for b in self.attacks
            if b["attack"] not in ("linkage", "downcoding") and b["kind"] != NOT_COMPUTED
        ]

    @property
    def not_computed(self) -> list[str]:
        """The attacks that concern the release and were not computed."""
        return [str(b["attack"]) for b in self.attacks if b["kind"] == NOT_COMPUTED]

    @property
    def top(self) -> Fraction:
        """The highest belief in a sensitive value that was computed."""
        return max((Fraction(str(b["worst"]["after"])) for b in self.values), default=Fraction(0))

    def worst(self) -> str:
        """The highest belief in a sensitive value, in words."""
        if not self.values:
            return "no attack on sensitive values was computed"
        top = max(self.values, key=lambda b: Fraction(str(b["worst"]["after"])))
        text = f"highest belief in a sensitive value {_number(top['worst']['after'])} ({top['attack']}"
        text += f", {_number(top['worst']['before'])} before)"
        missing = self.not_computed
        return f"{text}; NOT COMPUTED, which counts as 1: {', '.join(missing)}" if missing else text

    def _working_party(self) -> Iterator[GuidanceLine]:
        """The three criteria of WP216."""
        alone = [str(line) for line in self.private.get("singled_out", [])]
        exact = self.policy.recoding.exact
        if self.smallest is None or exact:
            why = (
                "quasi-identifiers are published as they are"
                if exact
                else "no requirement counts the classes"
            )
            yield GuidanceLine("singling out", "not met" if exact else "not assessed", why)
        else:
            basis = f"{self.smallest:,} people in the smallest class of {', '.join(self.policy.quasi_identifiers)}"
            fine = self.smallest >= 2 and not alone
            yield GuidanceLine("singling out", "met" if fine else "not met", "; ".join([basis, *alone]))
        yield self._linkability()
        asked = [v for v in self.checked.verdicts if v.model == "belief"]
        bounded = {v.attribute for v in asked}
        within = self.top <= max((to_fraction(v.parameters["max"]) for v in asked), default=Fraction(0))
        if bounded >= set(self.policy.sensitive) and within and not self.not_computed:
            said = [
                f"{v.attribute}: at most {v.parameters['max']} asked ({v.parameters['adversary']})"
                for v in asked
            ]
            yield GuidanceLine("inference", "met", f"{'; '.join(said)}; {self.worst()}")
        else:
            free = [name for name in self.policy.sensitive if name not in bounded]
            more = f"; no bound was asked for {', '.join(free)}" if free else ""
            yield GuidanceLine("inference", "not assessed", f"{self.worst()}{more}")

    def _linkability(self) -> GuidanceLine:
        stable = [
            n for n in self.policy.pseudonyms if n in self.policy.columns and self.policy.columns[n].stable
        ]
        if stable:
            return GuidanceLine(
                "linkability", "not met",
                f"stable pseudonyms in {', '.join(map(repr, stable))}: releases that share them can be joined",
            )  # fmt: skip
        if (linked := self.public.get("linked")) is not None:
            return GuidanceLine(
                "linkability", "not met", f"a pseudonym in {linked['by']!r} joins the rows of a person"
            )
        tables = len({t.get("part", "data") for t in self.public["tables"]})
        several = f"; its {tables} tables are attacked together (intersection)" if tables > 1 else ""
        return GuidanceLine(
            "linkability", "not assessed",
            "no column joins this release to another by content; whether other tables of the same people exist, which "
            f"quasi-identifiers could join, is not known{several}",
        )  # fmt: skip

    def _said(self, *names: str) -> str:
        said = [f"{STATED[n]} {self.about[n]}" for n in names if self.about.get(n)]
        return "stated: " + ", ".join(said) if said else ""

    def _shown(self, heading: str, basis: str) -> GuidanceLine:
        """A heading that asks for no threshold: what is on this page for it, or not assessed."""
        if not basis:
            return GuidanceLine(heading, "not assessed", "nothing about it is known to the program")
        return GuidanceLine(heading, "shown", basis)

    @property
    def _transformed(self) -> str:
        recoded = [
            c["name"] for c in self.dictionary["columns"] if c["role"] == "quasi-identifier" and c["recoded"]
        ]
        method = f"{self.policy.method.name}, {self.policy.recoding.name}"
        return f"{method}; recoded: {', '.join(recoded) or 'none'}"

    @property
    def _numbers(self) -> str:
        """What was measured of identifiability."""
        smallest = "" if self.smallest is None else f"smallest class {self.smallest:,} people; "
        return f"{smallest}{self.worst()}"

    @property
    def _tried(self) -> str:
        computed = [b for b in self.attacks if b["kind"] != NOT_COMPUTED]
        missing = f"; {len(self.not_computed)} not computed" if self.not_computed else ""
        return f"{len(computed)} attacks were run: {', '.join(str(b['attack']) for b in computed)}{missing}"

    @property
    def _usefulness(self) -> str:
        metrics, rows = self.private["metrics"], self.private["rows"]
        known = {name: metrics[name] for name in ("granularity", "information-loss") if name in metrics}
        shown = ", ".join(f"{name} {_number(value)}" for name, value in known.items())
        return f"{rows['published']:,} of {rows['input']:,} rows are published; {shown}"

    @property
    def _hidden(self) -> str:
        """What became of direct identifiers."""
        dropped, shown = self.private["columns"]["dropped"], self.policy.pseudonyms
        parts = [f"not published: {', '.join(dropped)}"] if dropped else []
        parts += [f"pseudonyms: {', '.join(shown)}"] if shown else []
        parts += ["the published tables were searched for others by content"]
        allowed = [n for n, c in self.policy.columns.items() if c.direct_identifiers == "allow"]
        return "; ".join([*parts, *([f"allowed by the policy: {', '.join(allowed)}"] if allowed else [])])

    def _nist(self) -> Iterator[GuidanceLine]:
        roles = Counter(c["role"] for c in self.dictionary["columns"])
        survey = ", ".join(f"{role}: {n}" for role, n in roles.items())
        hashed = "keyed hashes (HMAC-SHA256, 80 bits), the key in private/ only" if self.policy.pseudonyms else (
            "no direct identifier is published, hashed or otherwise")  # fmt: skip
        rows: list[tuple[str, str]] = [
            ("identifying goals and intended uses", self._said("purpose", "recipient")),
            ("evaluating risks that arise from releases", self._numbers),
            ("data life cycle", ""),
            ("data-sharing models", self._said("recipient", "licence")),
            ("the Five Safes", ""),
            ("disclosure review boards", self._said("approved_by", "approved_on")),
            ("conducting a data survey", survey),
            ("removing or transforming direct identifiers", self._hidden),
            ("encryption or hashing of direct identifiers", hashed),
            ("transforming quasi-identifiers", self._transformed),
            ("challenges posed by composition", ""),
            ("post-release monitoring", _log_text(self.folder)),
            ("validating data usefulness", self._usefulness),
            (
                "validating privacy protection",
                f"recounted from the published files: {_verdict_text(self.checked)}",
            ),
            ("re-identification studies", ""),
        ]
        yield from (self._shown(heading, basis) for heading, basis in rows)

    def _iso(self) -> Iterator[GuidanceLine]:
        known = Counter(b["adversary"] for b in self.attacks)
        rows: list[tuple[str, str]] = [
            ("6.2.2 security and privacy practices", ""),
            ("6.2.3 motives and capacity to re-identify", ""),
            ("6.3.2 transparency of actions and stakeholder engagement", self._said("contact", "licence")),
            ("6.3.3 privacy-related harms", ""),
            ("7.2.2 data principals", f"{self.private['people']:,} people"),
            ("7.2.3 data type", f"microdata, {len(self.public['tables'])} table(s)"),
            (
                "7.2.4 attribute types",
                ", ".join(f"{c['name']}: {c['role']}" for c in self.dictionary["columns"]),
            ),
            ("7.2.5 dataset properties", f"{self.private['rows']['published']:,} rows published"),
            ("7.3.2 maximum or average risk", "the worst person counts, not the average; " + self._numbers),
            ("7.3.3 population or sample-based attack", _population_text(self.policy)),
            ("7.3.4 data privacy models", _verdict_text(self.checked)),
            ("8.2.2 quantifying identifiability", self._numbers),
            ("8.2.3 adversarial testing", f"{self._tried}; adversary: {', '.join(known) or 'none'}"),
            ("8.3.2 reconfiguring the environment", ""),
            ("8.3.3 transforming the data", self._transformed),
            ("8.3.4 re-evaluation", "recounted from the files and verified again when this page was made"),
            ("9.2.2 assigning roles and responsibilities", self._said("approved_by", "contact")),
            ("9.2.3 establishing principles, policies and procedures", ""),
            (
                "9.2.4 identifying and managing a data disclosure",
                self._said("recipient", "approved_by", "approved_on"),
            ),
            ("9.2.5 communicating with stakeholders", self._said("contact")),
            ("9.3.2 monitoring the data environment", ""),
            ("9.4 mitigation in case of incident", _log_text(self.folder)),
        ]
        yield from (self._shown(heading, basis) for heading, basis in rows)


def _log_text(folder: Path) -> str:
    path = folder / PRIVATE / REVEALS
    if not path.is_file():
        return ""
    return (
        f"pseudonyms were revealed {len(path.read_bytes().splitlines()):,} time(s), by the log of the release"
    )


def _population_text(policy: Policy) -> str:
    if policy.population is None and policy.weight is None:
        return "sample-based: everybody is taken to know who is in the table"
    return "risks in the population are estimated as well, from its size, a table of it or survey weights"


def _verdict_text(checked: Verification) -> str:
    return "; ".join(v.sentence() for v in checked.verdicts)


def _number(value: Any) -> str:
    """A figure of a manifest, where a fraction is text."""
    return number_text(Fraction(value) if isinstance(value, str) else value)


# --- as a page ------------------------------------------------------------------------------------------------

BADGES = {"met": "good", "not met": "bad", "not assessed": "warn", "shown": "plain"}
CONTENTS = [
    ("released", "Released"), ("policy", "Policy"), ("attacks", "Attacks"), ("guidance", "Guidance"), ("seal", "Seal"),
]  # fmt: skip


def evidence_html(content: Mapping[str, Any]) -> str:
    """The page: one document that loads nothing, made for a screen and for paper."""
    about = content["about"]
    return html_page(
        f"Evidence: {about['title'] or 'a release'}",
        tag("h1", f"Evidence: {about['title'] or 'a release of microdata'}"),
        tag("p", f"Made by {content['product']} from the release with the hash {content['release'][:16]}…, which was "
                 "verified when this page was made. It is confidential, as is all of private/.", class_="lead"),
        _approval(about),
        _released(content),
        _policy_section(content),
        _attacked(content),
        page_section("guidance", "Held against guidance",
                     tag("p", "Met and not met: the published files answer the line, for the reason given beside it. "
                              "Shown: the line asks for no threshold; what this page has for it is beside it. Not "
                              "assessed: no program can say, or it was not asked to. None of it is legal advice."),
                     *(_guidance_table(SOURCES[name], lines) for name, lines in content["guidance"].items())),
        _sealed(content),
        contents=CONTENTS,
    )  # fmt: skip


def _approval(about: Mapping[str, Any]) -> Markup:
    rows = [(label, about[name] or NOT_STATED) for name, label in STATED.items()]
    parts = [html_table(("", "as stated by the custodian"), rows, caption="The release")]
    if not (about["approved_by"] and about["approved_on"]):
        line = "_" * 30
        parts.append(tag("p", f"Approved by {line} on {line}"))
    return tag("div", *parts)


def _released(content: Mapping[str, Any]) -> Markup:
    files = [
        (t["file"], f"{t['rows']:,}", tag("code", (t["sha256"] or "a folder")[:16]))
        for t in content["tables"]
    ]
    columns = [(c["name"], c["role"]) for c in content["columns"]]
    rows = content["rows"]
    lines = [
        f"{content['people']:,} people and {rows['input']:,} rows in the input ({content['input']['source']}).",
        f"{rows['published']:,} rows published, {rows['suppressed']:,} suppressed.",
        "Not published: " + (", ".join(content["dropped"]) or "nothing") + ".",
    ]
    return page_section(
        "released", "What was released", bullet_list(lines),
        html_table(("file", "rows", "sha256 begins with"), files, numbers=(1,), caption="Files"),
        html_table(("column", "role"), columns, caption="Columns"),
    )  # fmt: skip


def _policy_section(content: Mapping[str, Any]) -> Markup:
    rows = [
        (
            _requirement(v),
            v["asked"],
            _number(v["worst"]) if v["worst"] is not None else "",
            "holds" if v["ok"] else "fails",
        )
        for v in content["verdicts"]
    ]
    promised = [f"{', '.join(p['attributes'])}: {p['label']}" for p in content["promises"]]
    return page_section(
        "policy", "Under which policy",
        html_table(("requirement", "asked", "recounted", ""), rows, caption="Requirements, recounted"),
        *([tag("p", "Promised of sensitive values:"), bullet_list(promised)] if promised else []),
        folded_details("The policy", tag("pre", content["policy"], tabindex=0)),
        tag("p", f"sha256 of the policy: {content['policy_sha256']}", class_="note"),
    )  # fmt: skip


def _requirement(verdict: Mapping[str, Any]) -> str:
    settings = ", ".join(f"{k} {v}" for k, v in verdict["parameters"].items() if v is not None)
    return f"{verdict['model']} ({settings})" + (
        f" of {verdict['attribute']}" if verdict.get("attribute") else ""
    )


def _attacked(content: Mapping[str, Any]) -> Markup:
    rows = [
        (b["attack"], b["adversary"], b["kind"], _number(b["before"]) if b["kind"] != NOT_COMPUTED else "",
         _number(b["after"]) if b["kind"] != NOT_COMPUTED else "counts as 1", b["why"])
        for b in content["attacks"]
    ]  # fmt: skip
    shown = html_table(
        ("attack", "adversary", "result", "before", "after", "why"),
        rows,
        numbers=(3, 4),
        caption="Worst beliefs",
    )
    return page_section(
        "attacks", "What was attacked",
        tag("p", "The most that somebody could believe about somebody else, before and after the release."),
        shown if rows else tag("p", "Nothing was attacked."),
        *([tag("p", "Notes of the run:"), bullet_list(content["notes"])] if content["notes"] else []),
    )  # fmt: skip


def _guidance_table(source: str, lines: Sequence[Mapping[str, str]]) -> Markup:
    rows = [
        (line["line"], tag("span", line["answer"], class_=f"badge {BADGES[line['answer']]}"), line["basis"])
        for line in lines
    ]
    return html_table(("line", "answer", "rests on"), rows, caption=source)


def _sealed(content: Mapping[str, Any]) -> Markup:
    return page_section(
        "seal", "Seal",
        tag("p", "The release is fixed by one hash, of public/manifest.json, which holds the hashes of the files "
                 "beside it. The seal is a hash of the content of this page. `maskwright verify` compares both, and "
                 "the page itself; they show that something was changed, not by whom: keep a signed print, or the "
                 "hashes, elsewhere."),
        html_table(("", "sha256"), [("release", tag("code", content["release"])),
                                    ("seal", tag("code", content_seal(content)))], caption="Hashes"),
    )  # fmt: skip
