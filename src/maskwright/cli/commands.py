"""The command line. Exit 0: the policy is verified; 1: it is not met, nothing published; 2: bad input or usage."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from maskwright.addresses import scheme_of, shown_address, without_passwords
from maskwright.cli.process import Printed, Stopping, open_streams
from maskwright.errors import Cancelled, MaskwrightError, PolicyNotMet, UsageError, system_refused
from maskwright.version import version_text

if TYPE_CHECKING:
    from maskwright.suggest import Suggestion

INTERNAL = 70
EPILOG = """\
first steps:
  maskwright demo                                      the whole story on a bundled table
  maskwright advise patients.csv --recipient researchers    which model, which method, and why; writes policy.yaml
  maskwright init patients.csv                         the same without questions
  maskwright anonymize patients.csv -p policy.yaml -o release/
  maskwright verify release/                           recounts what was written
  maskwright attack release/                           what could anybody believe about anybody?
  maskwright audit published.csv --qi age,zip,sex --sensitive disease
  maskwright check table.csv --qi age,zip,sex           direct identifiers and k, for pipelines
  maskwright evidence release/ --approved-by "…"       what was released, checked against what, for the file
  maskwright reveal release/ 2OMDQ6… --source patients.csv --reason "adverse event"     whose is a pseudonym?
  maskwright compare patients.csv -p policy.yaml --grid k=2,5,10
  maskwright ui                                        all of it in the browser, on this machine only
  maskwright glossary                                  the ten words that a data steward meets
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Refuse the arguments, with the command that was probably meant."""
        wrong = re.search(r"invalid choice: '([^']+)' \(choose from (.*)\)", message)
        if wrong:  # all commands at once would hide the one that was meant
            close = difflib.get_close_matches(wrong[1], re.findall(r"'([^']+)'", wrong[2]), 1)
            message += f"; did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"{message}; see '{self.prog} --help'")


def _path(text: str) -> Path:
    """A path of this machine."""
    if scheme_of(text) is not None:
        raise UsageError(f"{shown_address(text)!r} is an address; name a file or folder of this machine")
    return Path(text)


def command_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    shared = _Parser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print one JSON object for machines")
    shared.add_argument(
        "-v", "--verbose", action="store_true", help="more about what happens and what went wrong"
    )
    main = _Parser(
        prog="maskwright", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Publish microdata that holds even when the attacker knows exactly how you made it.",
    )  # fmt: skip
    main.add_argument("--version", action="version", version=version_text())
    commands = main.add_subparsers(dest="command", metavar="command", required=True)

    def add(name: str, help_: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        """A subcommand with the options that all share."""
        command = commands.add_parser(name, help=help_, description=help_, parents=[shared])
        command.set_defaults(run=run)
        return command

    _add_anonymize(add("anonymize", "make a verified release of a table", _anonymize))
    _add_init(add("init", "profile a file and write a policy with guessed roles and hierarchies", _init))
    _add_advise(
        add("advise", "which model and which method? three questions, and a policy with its reasons", _advise)
    )
    add("glossary", "the ten words that a data steward meets", _glossary)
    command = add("verify", "recount a release that was written earlier", _verify)
    command.add_argument("release", type=_path, help="a release; with -p also a table, or a folder of tables")
    command.add_argument(
        "--recount-only", action="store_true",
        help="do not compare the files with their hashes: they may have been rewritten in another order or container",
    )  # fmt: skip
    command.add_argument(
        "-p", "--policy", type=_path,
        help="recount against this policy alone; no manifest is needed, and none is trusted",
    )  # fmt: skip
    command = add(
        "contract", "try the models, methods, attacks and metrics of a package of your own", _contract
    )
    command.add_argument("package", help="a package or module that can be imported")
    command = add(
        "attack", "be the adversary: every attack that applies to a release, the worst first", _attack
    )
    command.add_argument(
        "release", type=_path, nargs="+", help="a release, or several about overlapping people"
    )
    command.add_argument(
        "--people", type=_path, metavar="FILE",
        help="CSV that says who is in which of several releases: person, release (1, 2, ...), and the "
        "quasi-identifiers there (default: people with the same quasi-identifiers are the same)",
    )  # fmt: skip
    command.add_argument(
        "--control", type=_path, metavar="FILE",
        help="CSV of people who are not in the release, with its quasi-identifiers: runs singling-out",
    )  # fmt: skip
    command.add_argument("--attack", action="append", help="only this attack (may be given several times)")
    command.add_argument(
        "--adversary", default="knows-method", help="neighbour, journalist, knows-method, insider or learns"
    )
    command.add_argument("--facts", type=int, help="how many facts about others the adversary knows")
    command.add_argument(
        "--knowing", action="append", default=[], metavar="STATEMENT",
        help="something known about people, e.g. 'not person(age=34).disease = flu'; @FILE reads a file of them",
    )  # fmt: skip
    command.add_argument("--max-belief", help="exit with 1 when a belief is above this, e.g. 1/4")
    _add_audit(
        add("audit", "how safe is a table that some tool produced? with or without the original", _audit)
    )
    _add_check(add("check", "may a table go out? direct identifiers and k, for pipelines", _check))
    _add_evidence(add("evidence", "verify a release and write its evidence page, for the file", _evidence))
    _add_reveal(
        add("reveal", "who is behind a pseudonym of a release? for its custodian, with a log", _reveal)
    )
    _add_compare(
        add("compare", "risk against usefulness of several policies; nothing is published", _compare)
    )
    command = add("demo", "the whole story on the bundled Adult table, under a minute", _demo)
    command.add_argument(
        "-o",
        "--output",
        type=_path,
        help="default: maskwright-demo, where the next demo may replace this one",
    )
    command.add_argument("--overwrite", action="store_true", help="replace a release that is already there")
    _add_ui(add("ui", "the workbench: a local web application for the whole journey", _ui))
    for kind in ("models", "methods", "attacks", "metrics"):
        add(kind, f"the {kind} there are, with one line each", _list)
    add("schema", "print the JSON schema of policy files, for editors", _schema)
    return main


def _add_anonymize(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "source",
        help="a file (CSV, Parquet, Excel, Stata, SPSS, SAS), or a database (postgresql://user@host/name)",
    )
    _add_database(command)
    command.add_argument(
        "--into", metavar="TABLE", help="also write the release to this table of the database"
    )
    command.add_argument(
        "--database", metavar="URL", help="the database for --into (default: that of the source)"
    )
    command.add_argument("-p", "--policy", required=True, type=_path, help="policy file")
    command.add_argument("-o", "--output", required=True, type=_path, help="folder to publish to")
    command.add_argument("--overwrite", action="store_true", help="replace a release that is already there")
    command.add_argument(
        "--after", type=_path, metavar="RELEASE",
        help="the release that this one follows: both together reveal no more than one (method anatomy with "
        "`person`)",
    )  # fmt: skip
    command.add_argument(
        "--choose", type=int, metavar="N",
        help="publish with alternative N of those that were listed after a refusal or a great loss",
    )  # fmt: skip
    command.add_argument(
        "--no-alternatives", action="store_true",
        help="do not try other settings after a refusal or a great loss: each is a look at the table",
    )  # fmt: skip
    command.add_argument(
        "--memory", help="memory limit of the whole process, e.g. 4GB (default: 75 %% of the machine)"
    )
    command.add_argument(
        "--coarsen", choices=("auto",),
        help="auto: where combinations of quasi-identifiers would not fit into the memory, coarsen them before rows "
        "are grouped (default: refused, with the levels that would fit)",
    )  # fmt: skip
    command.add_argument(
        "--engine",
        choices=("duckdb", "spark"),
        help="where rows are processed (default: duckdb, in this process)",
    )
    command.add_argument("--master", help="address of the Spark cluster: spark://host:7077, yarn, local[4]")
    command.add_argument("--seed", type=int, help="repeatable random choices: for tests and experiments only")
    command.add_argument(
        "--keep-private", choices=("all", "report", "none"), default="all",
        help="what stays in private/ (default: all that later attacks need)",
    )  # fmt: skip
    command.add_argument(
        "--metric", action="append", default=[],
        help="measure a costly metric too: query-error, correlation-change, predictive-utility",
    )  # fmt: skip


def _add_compare(command: argparse.ArgumentParser) -> None:
    command.add_argument("source", help="CSV or Parquet file")
    command.add_argument(
        "-p",
        "--policy",
        required=True,
        action="append",
        type=_path,
        help="policy file (may be given several times)",
    )
    command.add_argument(
        "--grid", action="append", default=[], metavar="SETTING=VALUES",
        help="cross the policies with values of a setting: k=2,5,10, method=optimal-lattice,mondrian, mondrian.cut=…",
    )  # fmt: skip
    command.add_argument(
        "-o", "--output", type=_path, default=Path("maskwright-comparison"), help="default: %(default)s"
    )
    command.add_argument(
        "--overwrite", action="store_true", help="replace a comparison that is already there"
    )
    command.add_argument(
        "--metric",
        action="append",
        help="a costly metric to measure (default: query-error; none: only the cheap ones)",
    )
    command.add_argument(
        "--utility", default="information-loss", help="metric on the chart (default: %(default)s)"
    )
    command.add_argument(
        "--risk", default="worst", help="worst, or the name of one attack (default: %(default)s)"
    )
    command.add_argument(
        "--candidate", action="append", default=[], metavar="FILE",
        help="a table that another tool made of the same people, e.g. synthetic data (several times); needs --control",
    )  # fmt: skip
    command.add_argument(
        "--control",
        metavar="FILE",
        help="people like those of the table, who were not used to make any of these tables",
    )
    command.add_argument("--seed", type=int, default=0, help="seed of random choices (default: %(default)s)")
    command.add_argument(
        "--memory", help="memory limit of the whole process, e.g. 4GB (default: 75 %% of the machine)"
    )
    command.add_argument(
        "--no-cache", action="store_true", help="run every policy, even if it was compared before"
    )


def _add_database(command: argparse.ArgumentParser) -> None:
    command.add_argument("--table", help="the table of a database: schema.name")
    command.add_argument("--query", help="a SELECT to run in place of --table")


def _source(options: argparse.Namespace) -> Any:
    """What is to be read: a path, or a table or query of a database."""
    if options.table is None and options.query is None:
        return options.source
    from maskwright.engines.readers.postgres import Postgres

    return Postgres(options.source, options.table, options.query)


def _shown(options: argparse.Namespace) -> str:
    """The source for people: an address may hold a password."""
    if options.table is None and options.query is None:
        return str(options.source)
    return "postgresql://… " + (f"--table {options.table}" if options.table else "--query …")


def _into(options: argparse.Namespace) -> Any:
    if options.into is None:
        return None
    from maskwright.engines.readers.postgres import SCHEMES, Postgres

    url = options.database or (options.source if options.source.startswith(SCHEMES) else None)
    if url is None:
        raise UsageError("--into: name the database with --database postgresql://user@host/name")
    return Postgres(url, options.into)


def _add_advise(command: argparse.ArgumentParser) -> None:
    _add_reading(command)
    command.add_argument(
        "--recipient",
        default="anybody",
        help="who gets the data? anybody (default), researchers or regulator",
    )
    command.add_argument(
        "--knows", default="method",
        help="what may they know? people: who is in it, and their quasi-identifiers; method (default): also the method",
    )  # fmt: skip
    command.add_argument(
        "--needs", default="detail",
        help="what do they need? detail (default), same-labels in every row, or a guarantee that is proven",
    )  # fmt: skip


def _add_init(command: argparse.ArgumentParser) -> None:
    _add_reading(command)
    command.add_argument(
        "--preset", help="open-data, research, hipaa-safe-harbor, ema-clinical, small-cells-11"
    )
    command.add_argument(
        "--untried", action="store_true",
        help="do not try policies on the table: then nobody has looked at it, and guarantees can hold",
    )  # fmt: skip


def _add_reading(command: argparse.ArgumentParser) -> None:
    """The table that a policy is written for, how to read it, and where the policy goes."""
    command.add_argument("source", help="a file (CSV, Parquet, Excel, Stata, SPSS, SAS), or a database")
    _add_database(command)
    command.add_argument(
        "-o", "--output", type=_path, default=Path("policy.yaml"), help="default: %(default)s"
    )
    command.add_argument("--overwrite", action="store_true", help="replace the policy file if it exists")
    command.add_argument("--delimiter", help="delimiter of a CSV file (default: detected)")
    command.add_argument("--encoding", default="utf-8", help="encoding of a CSV file (default: %(default)s)")
    command.add_argument(
        "--no-header", action="store_true", help="the CSV file has no line with column names"
    )
    command.add_argument("--sheet", help="sheet of an Excel workbook that has several")
    command.add_argument(
        "--labels", action="store_true", help="read the value labels of a Stata or SPSS file, not its codes"
    )


def _add_ui(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "paths", nargs="*", type=_path, metavar="path",
        help="files, and folders whose tables may be opened by path (default: the current folder)",
    )  # fmt: skip
    command.add_argument(
        "--workspace", type=_path, help="folder for projects and the register (default: in your home)"
    )
    command.add_argument("--port", type=int, help="default: 8765, or a free one")
    command.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    command.add_argument(
        "--name", action="append", default=[], help="a host name for browsers (default: a random one)"
    )
    command.add_argument("--memory", help="memory limit of each run, e.g. 4GB")
    command.add_argument("--max-upload", default="2GB", help="largest upload (default: %(default)s)")
    command.add_argument("--no-browser", action="store_true", help="do not open a browser")


def _names(text: str) -> list[str]:
    """The column names in a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _add_check(command: argparse.ArgumentParser) -> None:
    command.add_argument("table", nargs="+", help="CSV or Parquet files, each checked by itself")
    command.add_argument(
        "--qi", type=_names, default=[], help="columns an attacker could know, e.g. age,zip,sex"
    )
    command.add_argument(
        "-k", type=int, help="the fewest people in a class (default: that of the policy, or 5)"
    )
    command.add_argument("--unit", help="the column that tells people apart, if they have several rows")
    command.add_argument(
        "-p", "--policy", type=_path, help="a policy that names quasi-identifiers, k and what is allowed"
    )
    command.add_argument(
        "--allow", type=_names, default=[], help="columns that look like direct identifiers but are not"
    )
    command.add_argument(
        "--preset", help="guidance line by line: hipaa-safe-harbor, ema-clinical or gdpr-wp216"
    )


# What a page of evidence says beside the figures: the fields of `policy.policy.Particulars`, which --help need not load
PARTICULARS = {
    "title": "title of the release",
    "contact": "whom readers may ask",
    "licence": "what readers may do with it",
    "date": "date of the release, such as 2026-05-31",
    "recipient": "to whom it is given",
    "purpose": "what it is for",
    "approved_by": "who approved it",
    "approved_on": "when it was approved, such as 2026-05-31",
}


def _add_evidence(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "release", type=_path, help="a release with its private/ folder, into which the page is written"
    )
    for name, said in PARTICULARS.items():
        command.add_argument(
            f"--{name.replace('_', '-')}", help=f"{said} (default: what the policy's `about` says)"
        )
    command.add_argument("--overwrite", action="store_true", help="replace an evidence page that is there")


def _add_reveal(command: argparse.ArgumentParser) -> None:
    command.add_argument("release", type=_path, help="a release with its private/ folder, which has the key")
    command.add_argument(
        "pseudonym",
        nargs="+",
        help="a pseudonym as the release shows it; @FILE reads a file with one on each line",
    )
    command.add_argument("--source", required=True, help="the table that the release was made from")
    command.add_argument(
        "--reason",
        required=True,
        help="the reason; it is written into private/reveals.jsonl with who asked, and when",
    )
    command.add_argument("--column", help="the column of the pseudonyms, if there are several")


def _add_audit(command: argparse.ArgumentParser) -> None:
    def add(flag: str, help_: str, **more: Any) -> None:
        """Add one option."""
        command.add_argument(flag, help=help_, **more)

    command.add_argument(
        "table", help="CSV or Parquet file; for a bucketized release the one with quasi-identifiers"
    )
    add("--qi", "columns an attacker could know, e.g. age,zip,sex", type=_names, default=[])
    add("--sensitive", "columns nobody should be able to infer", type=_names, default=[])
    command.add_argument(
        "-p", "--policy", type=_path, help="roles, requirements and hierarchies from a policy"
    )
    add("--require", "a requirement, e.g. 'k-anonymity k=5' (several times)", action="append", default=[])
    add("--original", "the raw table, if it is at hand")
    add(
        "--control",
        "with --original: people like them, from whom the table was not made; both are attacked",
    )
    add("--sensitive-table", "the sensitive values of a bucketized release")
    add("--group", "the column that joins the two tables, or holds the groups of a permuted one")
    add(
        "--unit",
        "the column that tells people apart, if they have several rows; none: every row is a person",
    )
    add("--population", "a table of everybody who could be in the data")
    add("--max-belief", "exit with 1 when a belief is above this, e.g. 1/4")
    add("--adversary", "neighbour, journalist, knows-method, insider or learns")
    add("--facts", "how many facts about others the adversary knows", type=int)
    add("--missing", "a text that means missing (several times)", action="append", default=[])
    add("--delimiter", "delimiter of CSV files (default: detected)")
    add("--encoding", "encoding of CSV files (default: utf-8)")
    add("--html", "also write a report to this file", type=_path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; every outcome is one clear line and an exit code, never a traceback."""
    # to find plugins, pydantic would read what every installed package says of itself
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if arguments is None:  # a process of its own
        open_streams()
    with Stopping(ends_here=arguments is None) as stopping:
        return _main(list(sys.argv[1:] if arguments is None else arguments), stopping)


def _main(arguments: list[str], stopping: Stopping) -> int:
    verbose, as_json = _flag(arguments, "-v", "--verbose"), _flag(arguments, "--json")
    printed = Printed()
    try:
        options = command_parser().parse_args(
            arguments, argparse.Namespace(stopping=stopping, tell=printed.tell)
        )
        code = int(options.run(options))
    except SystemExit as done:  # --help, --version
        code = int(done.code or 0)
    except (Exception, KeyboardInterrupt) as caught:
        # libraries make all kinds of errors of a Ctrl-C
        problem = KeyboardInterrupt() if stopping.asked and not stopping.final else caught
        code, text = _in_words(problem)
        text = without_passwords(text)
        details = (
            getattr(problem, "details", "") if code != INTERNAL else without_passwords(traceback.format_exc())
        )
        other = getattr(problem, "alternatives", None)
        if as_json:
            more = {} if other is None else {"alternatives": other.as_list()}
            printed.tell(json.dumps({"ok": False, "error": text, "exit": code, **more}))
        told = [] if other is None or as_json else list(other.lines())
        printed.complain(f"maskwright: {text}", *told, *([details] if details and verbose else []))
    return printed.end(code, stopping.final)


def _in_words(problem: BaseException) -> tuple[int, str]:
    """The exit code, and one line."""
    if isinstance(problem, MaskwrightError):
        return problem.exit_code, str(problem)
    if isinstance(problem, KeyboardInterrupt):
        return Cancelled.exit_code, "cancelled; nothing was published"
    if isinstance(problem, MemoryError):
        return 2, "out of memory; nothing was published. Try --memory, or fewer quasi-identifiers"
    if isinstance(problem, OSError):
        return 2, system_refused(problem)
    # Its text may hold values of the table, so only its kind is shown unless asked for.
    where = traceback.extract_tb(problem.__traceback__)[-1]
    text = f"internal error: {type(problem).__name__} in {Path(where.filename).name}:{where.lineno}"
    return INTERNAL, f"{text}; this is a bug, please report it (--verbose shows more, and may show data)"


def _flag(arguments: Sequence[str], *names: str) -> bool:
    return any(name in arguments for name in names)


def _answer(options: argparse.Namespace, answer: Any, lines: Iterable[str]) -> None:
    """Print what a command found: one JSON object for machines, or lines for people."""
    options.tell(json.dumps(answer, ensure_ascii=False) if options.json else "\n".join(lines))


def _anonymize(options: argparse.Namespace) -> int:
    from maskwright.pipeline.job import Job, metrics_named
    from maskwright.policy.policy import Policy

    job = Job(
        source=_source(options), policy=Policy.load(options.policy), destination=options.output, into=_into(options),
        overwrite=options.overwrite, seed=options.seed, memory=options.memory, keep_private=options.keep_private,
        engine=options.engine, master=options.master, metrics=metrics_named(options.metric), after=options.after,
        coarsen=options.coarsen,
    )  # fmt: skip
    if options.choose is not None:
        from maskwright.pipeline.alternatives import chosen_alternative

        job = replace(job, policy=chosen_alternative(job, options.choose))
    return _publish(job, options, with_alternatives=not options.no_alternatives)


def _publish(job: Any, options: argparse.Namespace, with_alternatives: bool = False) -> int:
    from maskwright.cli.terminal import Display, release_lines
    from maskwright.pipeline.alternatives import alternatives_to
    from maskwright.pipeline.publish import publish_release
    from maskwright.report.verdict_words import verdict_words

    stopping: Stopping = options.stopping
    try:
        with Display(quiet=options.json, verbose=options.verbose) as display:
            release = publish_release(job, stopping.watching(display.show), stopping.is_set)
    except PolicyNotMet as problem:
        if with_alternatives:
            with suppress(MaskwrightError):  # the refusal is what must be told
                problem.alternatives = alternatives_to(job, None, stopping.is_set)
        raise
    answer = release.as_dict() | {"words": list(verdict_words(release))}
    lines = list(release_lines(release))
    if with_alternatives and release.great_losses:
        with suppress(MaskwrightError):
            found = alternatives_to(job, release, stopping.is_set)
            answer["alternatives"] = found.as_list()
            lines += ["", *found.lines()]
    _answer(options, answer, lines)
    return 0 if release.ok else 1


def _compare(options: argparse.Namespace) -> int:
    from maskwright.api import compare
    from maskwright.cli.terminal import Display, comparison_lines
    from maskwright.comparing.output import check_comparison_folder
    from maskwright.comparing.points import parse_grid
    from maskwright.pipeline.job import input_files
    from maskwright.policy.policy import Policy

    metrics = ["query-error"] if options.metric is None else [m for m in options.metric if m != "none"]
    check_comparison_folder(
        options.output,
        options.overwrite,
        [
            *input_files(options.source, *map(Policy.load, options.policy)),
            *(
                path
                for table in (*options.candidate, options.control)
                if table
                for path in input_files(table)
            ),
        ],
    )
    with Display(quiet=options.json, verbose=options.verbose) as display:
        found = compare(
            options.source, options.policy, grid=parse_grid(options.grid), metrics=metrics, utility=options.utility,
            risk=options.risk, candidates=options.candidate, control=options.control, seed=options.seed,
            memory=options.memory, cache=not options.no_cache,
            on_event=display.show, cancelled=options.stopping.is_set,
        )  # fmt: skip
    with options.stopping.finishing():
        found.save(options.output, options.overwrite)
    _answer(options, found.as_dict() | {"path": str(options.output)}, comparison_lines(found, options.output))
    return 0 if found.ok else 1


def _demo(options: argparse.Namespace) -> int:
    from importlib.resources import as_file, files

    from maskwright.pipeline.job import Job
    from maskwright.policy.policy import Policy

    with as_file(files("maskwright").joinpath("data", "adult")) as folder:
        policy = folder / "policy.yaml"
        if not options.json:
            options.tell(
                "The Adult table (30,162 people of the 1994 US census) is published so that nobody can be told\n"
                "apart from at least four others by nine attributes that a neighbour could know.\n"
            )
        place, overwrite = (options.output, options.overwrite) if options.output else _place_of_demo()
        job = Job(folder / "adult.csv", Policy.load(policy), place, overwrite, command="maskwright demo")
        return _publish(job, options)


def _place_of_demo() -> tuple[Path, bool]:
    """Where a demo goes by itself: the place of the last one, else one that is free; and whether to overwrite."""
    from itertools import count

    from maskwright.errors import DestinationError
    from maskwright.folder.store import MANIFEST, PRIVATE, check_destination, read_object

    names = ("maskwright-demo" + (f"-{number}" if number > 1 else "") for number in count(1))
    for place in map(Path, names):
        if not (place.exists() or place.is_symlink()):
            break
        made_from = read_object(place / PRIVATE / MANIFEST).get("input")
        if isinstance(made_from, dict) and made_from.get("command") == "maskwright demo":
            with suppress(DestinationError):
                check_destination(place, overwrite=True)
                return place, True
    return place, False


POLICY, AUDIT = (
    ("a policy", (r"^version:", r"^columns:")),
    ("an audit", (r"\A<!doctype html>", "<title>Audit of ")),
)


def _check_file(path: Path, kind: tuple[str, Sequence[str]], inputs: Iterable[Path], overwrite: bool) -> None:
    """Refuse to replace a file that is read, that is not of its kind, or that nobody said may be replaced."""
    from maskwright.folder.store import check_inputs

    check_inputs(path, inputs)
    if not path.is_file():
        return
    what, marks = kind
    with path.open("rb") as file:
        text = file.read(1 << 20).decode("utf-8", "replace")
    if not all(re.search(mark, text, re.MULTILINE) for mark in marks):
        raise UsageError(f"{str(path)!r} exists and is not {what}; choose another name for what is written")
    if not overwrite:
        raise UsageError(f"{str(path)!r} exists; use --overwrite, or -o for another name")


def _write(options: argparse.Namespace, path: Path, text: str) -> None:
    from maskwright.runtime.disk import write_whole

    try:
        with options.stopping.finishing():
            write_whole(path, text)
    except OSError as problem:
        raise UsageError(f"cannot write {str(path)!r}: {problem.strerror}") from None


def _init(options: argparse.Namespace) -> int:
    from maskwright.cli.terminal import suggestion_lines

    suggestion = _suggested(options, preset=options.preset, tried=not options.untried)
    lines = suggestion_lines(suggestion, _shown(options), options.output)
    _answer(options, {"ok": True, "policy": str(options.output), **suggestion.as_dict()}, lines)
    return 0


def _advise(options: argparse.Namespace) -> int:
    from maskwright.cli.terminal import suggestion_lines
    from maskwright.suggest.advice import Answers, find_unsuited

    answers = Answers(options.recipient, options.knows, options.needs)
    suggestion = _suggested(options, answers=answers)
    unsuited = find_unsuited(_source(options), suggestion.policy)
    answer = {"ok": True, "policy": str(options.output), "reasons": answers.reasons()}
    lines = [
        *answers.reasons(), "", *suggestion_lines(suggestion, _shown(options), options.output), "",
        "Other methods and models can be written into the policy. Not for this table, as it stands:",
        *unsuited.lines(), "What the words mean: maskwright glossary",
    ]  # fmt: skip
    _answer(options, answer | suggestion.as_dict() | {"unsuited": asdict(unsuited)}, lines)
    return 0


def _suggested(options: argparse.Namespace, **how: Any) -> Suggestion:
    """The policy for a table, written to its file."""
    from maskwright.api import suggest_policy
    from maskwright.engines.base import Reading
    from maskwright.pipeline.job import input_files

    source = _source(options)
    read = input_files(source)
    _check_file(options.output, POLICY, read, options.overwrite)
    reading = Reading(
        delimiter=options.delimiter, encoding=options.encoding, header=not options.no_header,
        sheet=options.sheet, labels=options.labels,
    )  # fmt: skip
    suggestion = suggest_policy(source, reading=reading, **how)
    _check_file(
        options.output, POLICY, read, options.overwrite
    )  # somebody may have put something there meanwhile
    _write(options, options.output, suggestion.text)
    return suggestion


def _glossary(options: argparse.Namespace) -> int:
    from maskwright.report.glossary import GLOSSARY

    width = max(map(len, GLOSSARY))
    lines = [
        line
        for word, meaning in GLOSSARY.items()
        for line in textwrap.wrap(
            meaning, 100, initial_indent=f"{word:{width}}  ", subsequent_indent=" " * (width + 2)
        )
    ]
    _answer(options, GLOSSARY, lines)
    return 0


def _verify(options: argparse.Namespace) -> int:
    from maskwright.cli.terminal import verification_lines
    from maskwright.folder.store import recover_destination
    from maskwright.pipeline.gates import verify_release
    from maskwright.policy.policy import Policy

    if options.policy is not None:
        notes, policy = [], Policy.load(options.policy)
    else:
        notes, policy = recover_destination(options.release), None
    result = verify_release(options.release, options.recount_only, policy)
    _answer(options, result.as_dict(), [*notes, *verification_lines(result)])
    return 0 if result.ok else 1


def _contract(options: argparse.Namespace) -> int:
    from maskwright.plugins import contract_findings

    # as `python -m` does: a module that lies here can be tried before it is installed
    sys.path.insert(0, str(Path.cwd()))
    found = dict(contract_findings(options.package))
    lines = [
        line
        for name, wrong in found.items()
        for line in (
            [f"{name}: BROKEN"] + [f"  {text}" for text in wrong]
            if wrong
            else [f"{name}: keeps the contract"]
        )
    ]
    ok = not any(found.values())
    _answer(options, {"ok": ok, "findings": found}, lines)
    return 0 if ok else 1


def _attack(options: argparse.Namespace) -> int:
    from maskwright.attacks import ATTACKS
    from maskwright.cli.terminal import belief_lines
    from maskwright.pipeline.attacking import (
        adversary_named,
        attack_target,
        belief_bound,
        beliefs_above,
        knowledge_statements,
        listed_people,
        target_of,
        targets_of,
    )

    bound = belief_bound(options.max_belief, "--max-belief")
    who = adversary_named(options.adversary, options.facts)
    attacks: list[Any] = options.attack or list(ATTACKS)
    if options.knowing:
        attacks = [*attacks, ATTACKS["background-knowledge"](knowing=knowledge_statements(options.knowing))]  # type: ignore[call-arg]
    several = len(options.release) > 1
    if options.people is not None:
        if not several:
            raise UsageError("--people says who is in which of several releases; name all of them")
        listed = listed_people(options.people, "--people")
        needed = {"intersection", "minimality"}.intersection(attacks) | {"intersection"}
        attacks = [a for a in attacks if a not in needed]
        attacks += [ATTACKS[name](people=listed) for name in sorted(needed)]  # type: ignore[call-arg]
    if options.control is not None:
        attacks = [a for a in attacks if a != "singling-out"]
        attacks.append(ATTACKS["singling-out"](control=listed_people(options.control, "--control")))  # type: ignore[call-arg]
    target = targets_of(options.release) if several else target_of(options.release[0])
    found = attack_target(target, attacks, who)
    # nothing that was not attacked is below a bound
    failed = bool(beliefs_above(found, bound)) or (bound is not None and not found)
    answer = {"ok": not failed, "beliefs": [b.as_dict() for b in found]}
    _answer(options, answer, belief_lines(found, bound))
    return 1 if failed else 0


def _ui(options: argparse.Namespace) -> int:
    from maskwright.workbench.serve import Options, serve_workbench

    return serve_workbench(
        Options(
            options.paths, options.workspace, options.host, options.port, options.name, options.memory,
            options.max_upload, not options.no_browser, options.json,
        )
    )  # fmt: skip


def _audit(options: argparse.Namespace) -> int:
    from maskwright.api import audit
    from maskwright.engines.base import Reading
    from maskwright.pipeline.job import input_files
    from maskwright.policy.binding import reading_options as reading_of
    from maskwright.policy.policy import Policy

    policy = None if options.policy is None else Policy.load(options.policy)
    reading = reading_of(policy) if policy else Reading()
    said = {"delimiter": options.delimiter, "encoding": options.encoding, "missing": tuple(options.missing)}
    tables = (options.table, options.original, options.control, options.sensitive_table, options.population)
    read = [*(path for table in tables for path in input_files(table)), *(policy.inputs if policy else ())]
    if options.html is not None:
        _check_file(options.html, AUDIT, read, overwrite=True)
    found = audit(
        options.table, options.qi, options.sensitive, policy=policy, require=options.require,
        original=options.original, control=options.control, sensitive_table=options.sensitive_table,
        group=options.group,
        unit=options.unit, population=options.population, max_belief=options.max_belief,
        adversary=options.adversary, facts=options.facts,
        reading=replace(reading, **{key: value for key, value in said.items() if value}),
    )  # fmt: skip
    if options.html is not None:
        page = found.html()
        _check_file(options.html, AUDIT, read, overwrite=True)
        _write(options, options.html, page)
    _answer(options, found.as_dict(), [str(found)])
    return 0 if found.ok else 1


def _check(options: argparse.Namespace) -> int:
    from maskwright.api import check

    found = [
        check(
            table, options.qi, k=options.k, unit=options.unit, policy=options.policy, allow=options.allow,
            preset=options.preset,
        )
        for table in options.table
    ]  # fmt: skip
    fine = all(result.ok for result in found)
    _answer(options, {"ok": fine, "tables": [result.as_dict() for result in found]}, map(str, found))
    return 0 if fine else 1


def _evidence(options: argparse.Namespace) -> int:
    from maskwright.auditing.evidence_page import write_evidence_page

    stated = {name: text for name in PARTICULARS if (text := getattr(options, name)) is not None}
    with options.stopping.finishing():
        found = write_evidence_page(options.release, stated, overwrite=options.overwrite)
    answer = {
        "ok": True,
        "path": str(found.folder),
        "answers": dict(found.answers),
        "evidence": found.content,
    }
    _answer(options, answer, [str(found)])
    return 0


def _reveal(options: argparse.Namespace) -> int:
    from maskwright.pipeline.revealing import reveal_people

    tokens = [line for text in options.pseudonym for line in _lines_of(text)]
    found = reveal_people(options.release, options.source, tokens, options.reason, options.column)
    _answer(options, found.as_dict(), [str(found)])
    return 0 if found.ok else 1


def _lines_of(text: str) -> list[str]:
    """A text, or the lines of the file that it names with an @."""
    if not text.startswith("@"):
        return [text]
    try:
        return [line for line in Path(text[1:]).read_text(encoding="utf-8").split() if line]
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not a text file in UTF-8"
        raise UsageError(f"{text[1:]!r} cannot be read: {reason}") from None


def _list(options: argparse.Namespace) -> int:
    from importlib import import_module

    registry = getattr(import_module(f"maskwright.{options.command}"), options.command.upper())
    lines = {name: item.summary_line() for name, item in registry.items()}
    width = max(map(len, lines))
    _answer(options, lines, (f"{name:{width}}  {line}" for name, line in lines.items()))
    return 0


def _schema(options: argparse.Namespace) -> int:
    from maskwright.api import policy_schema

    options.tell(json.dumps(policy_schema(), indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
