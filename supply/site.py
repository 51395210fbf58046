"""The documentation site: `make site` builds it from README.md and docs/ into build/site/, one folder per version.

The pages in docs/ are its source, and are meant to be read there as well. So they link to tests and code; on the site
such a link becomes the name of the file. Every other link must lead somewhere: MkDocs is asked to be strict. MkDocs and
its theme have an environment of their own, build/site-env, with the versions of supply/site-requirements.txt.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import yaml

from maskwright.version import __version__

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"
STAGE, ENVIRONMENT, SITE = BUILD / "site-pages", BUILD / "site-env", BUILD / "site"
REQUIREMENTS = Path(__file__).with_name("site-requirements.txt")
# pages outside docs/ that belong to the site
BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "benchmarks/README.md": "benchmarks.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
NAV: list[tuple[str, list[str]]] = [
    ("Begin", ["tutorial.md", "tutorials/*", "glossary.md", "choose.md", "advise.md", "init.md", "workbench.md",
               "notebook.md"]),
    ("Coming from another tool", ["for-arx-users.md", "for-sdcmicro-users.md"]),
    ("The table", ["inputs.md", "prepare.md", "identifiers.md", "people.md", "multivalued.md", "population.md",
                   "survey.md", "hierarchies.md", "formulas.md", "databases.md", "spark.md", "memory.md", "scale.md"]),
    ("The release", ["presets.md", "recodings.md", "perturbation.md", "marginals.md", "report.md", "new-rows.md",
                     "sequences.md", "audit.md", "evidence.md", "compare.md"]),
    ("Models", ["models/*"]),
    ("Methods", ["methods/*"]),
    ("Attacks", ["attacks/*"]),
    ("Metrics", ["metrics/*"]),
    ("What is promised", ["promise.md", "threat-model.md", "security.md", "reporting.md"]),
    ("Evidence", ["papers/*", "worked-examples/*", "errata.md", "benchmarks.md", "testing.md"]),
    ("Reference", ["reference.md", "python.md", "plugins.md", "how-it-works.md", "contributing.md", "licences.md",
                   "changelog.md"]),
    ("Decisions", ["decisions/*"]),
]  # fmt: skip


def on_site(page: str, target: str) -> str | None:
    """Where a link of a page leads on the site, relative to the page; None: to a file that is not on it."""
    path, mark, place = target.partition("#")
    whole = os.path.normpath(PurePosixPath(page).parent / path).replace(os.sep, "/") if path else page
    here = BESIDE.get(page, page.removeprefix("docs/"))
    if whole in BESIDE:
        there = BESIDE[whole]
    elif whole.startswith("docs/") and (ROOT / whole).exists():
        there = whole.removeprefix("docs/")
        there = f"{there}/README.md" if (ROOT / whole / "README.md").exists() else there
    else:
        return None
    if (ROOT / whole).is_dir() and not there.endswith(".md"):
        return None
    return os.path.relpath(there, PurePosixPath(here).parent).replace(os.sep, "/") + mark + place


def for_site(page: str, text: str) -> str:
    """The text of a page with its links as the site has them."""

    def leading(match: re.Match[str]) -> str:
        """A link that leads somewhere on the site, or the words of one that does not."""
        picture, words, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        there = on_site(page, target)
        return f"{picture}[{words}]({there})" if there is not None else words

    return LINK.sub(leading, text)


def stage_pages() -> list[str]:
    """Everything of the site as MkDocs reads it; the names of its pages."""
    shutil.rmtree(STAGE, ignore_errors=True)
    pages = []
    for source in sorted((ROOT / "docs").rglob("*")):
        name = source.relative_to(ROOT / "docs").as_posix()
        place = STAGE / name
        if source.is_dir() or source.suffix in (".py", ".pyc"):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            pages.append(name)
            place.write_text(for_site(f"docs/{name}", source.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            shutil.copyfile(source, place)
    for source_name, name in BESIDE.items():
        text = for_site(source_name, (ROOT / source_name).read_text(encoding="utf-8"))
        (STAGE / name).write_text(text, encoding="utf-8")
        pages.append(name)
    return pages


def navigation(pages: list[str]) -> list[dict[str, list[str]]]:
    """The sections with their pages; every page is in exactly one."""
    left, found = set(pages) - {"index.md"}, []
    for title, names in NAV:
        listed = []
        for name in names:
            matched = sorted(p for p in left if PurePosixPath(p).match(name)) if "*" in name else [name]
            if missing := [p for p in matched if p not in left]:
                raise SystemExit(
                    f"supply/site.py: {missing[0]} is in the navigation, and there is no such page"
                )
            matched.sort(key=lambda p: (not p.endswith("README.md"), p))  # the overview comes first
            left -= set(matched)
            listed += matched
        found.append({title: listed})
    if left:
        raise SystemExit(f"supply/site.py: no section lists {', '.join(sorted(left))}")
    return found


def configuration(pages: list[str]) -> dict[str, object]:
    """What MkDocs is told."""
    return {
        "site_name": f"Maskwright {__version__}",
        "docs_dir": str(STAGE),
        "site_dir": str(SITE / __version__),
        "theme": {
            "name": "material",
            "font": False,  # a page loads nothing from anywhere else
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "indigo"},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "indigo"},
            ],
            "features": ["navigation.indexes", "navigation.top", "search.highlight", "content.code.copy"],
        },
        "plugins": ["search"],
        "markdown_extensions": ["tables", "fenced_code", "attr_list", {"toc": {"permalink": True}}],
        "extra": {"version": {"provider": "mike"}, "generator": False},
        "nav": [{"Maskwright": "index.md"}, *navigation(pages)],
        "validation": {"links": {"not_found": "warn", "anchors": "warn", "absolute_links": "warn"}},
        "strict": True,
    }


def mkdocs() -> Path:
    """The program, installed where it is not yet."""
    program = ENVIRONMENT / "bin" / "mkdocs"
    stamp = ENVIRONMENT / "requirements.txt"
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    if not program.exists() or not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
        pip = [ENVIRONMENT / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", REQUIREMENTS], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return program


def main() -> None:
    pages = stage_pages()
    config = BUILD / "mkdocs.yml"
    config.write_text(yaml.safe_dump(configuration(pages), sort_keys=False), encoding="utf-8")
    subprocess.run(
        [mkdocs(), "build", "--quiet", "--config-file", config], check=True,
        env=os.environ | {"DISABLE_MKDOCS_2_WARNING": "true", "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    versions = sorted((p.name for p in SITE.iterdir() if (p / "index.html").exists()), reverse=True)
    listed = [{"version": v, "title": v, "aliases": ["latest"] if v == __version__ else []} for v in versions]
    (SITE / "versions.json").write_text(json.dumps(listed), encoding="utf-8")
    forward = (
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={__version__}/">\n'
    )
    (SITE / "index.html").write_text(forward, encoding="utf-8")
    print(f"{len(pages)} pages: {(SITE / __version__ / 'index.html').relative_to(ROOT)}")


if __name__ == "__main__":
    main()
