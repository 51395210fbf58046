"""A model, a method, an attack and a metric are added by a file and a line each, and are then found everywhere.

The package is copied, and the four files and lines are written into the copy: nothing else of it is touched.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import maskwright
from tests.patients import POLICY, patients, write_csv

ROOT = Path(__file__).parents[2]
FILES = {
    "models/toy_model.py": '''
from typing import ClassVar
from maskwright.domain.model import Model

class ToyModel(Model):
    """Every class has at least this many people, says the toy model.

    Attributes:
        people: the least number of people of a class.
    """

    name: ClassVar[str] = "toy-model"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True
    about: ClassVar = "quasi-identifiers"
    people: int

    def check(self, classes, context):
        sizes = classes.sizes
        worst = int(sizes.argmin()) if len(sizes) else None
        return self.verdict(sizes >= self.people, sizes, worst, f"at least {self.people}", "toy people")
''',
    "methods/toy_method.py": '''
from typing import ClassVar
from maskwright.domain.method import Decisions, Method, Task
from maskwright.methods.optimal_lattice import OptimalLattice

class ToyMethod(Method):
    """Everything is published as one class, says the toy method.

    Attributes:
        play: nothing depends on it.
    """

    name: ClassVar[str] = "toy-method"
    play: int = 3

    def decisions(self):
        return Decisions()

    def group(self, task):
        top = {h.attribute: [h.top] for h in task.summary.attributes}
        return OptimalLattice().group(Task(task.summary, task.search, task.context, task.rng, levels=top))
''',
    "attacks/toy_attack.py": '''
from fractions import Fraction
from typing import ClassVar
from maskwright.domain.adversary import Attack
from maskwright.domain.beliefs import Belief, Beliefs

class ToyAttack(Attack):
    """The belief of somebody who believes a seventh of everything, says the toy attack."""

    name: ClassVar[str] = "toy-attack"
    about: ClassVar = "values"
    takes: ClassVar = frozenset()

    def run(self, target, adversary):
        worst = Belief(Fraction(1, 9), Fraction(1, 7), "a child", "of playing")
        return Beliefs(self.name, adversary.name, "exact", worst, {})
''',
    "metrics/toy_metric.py": '''
def toy_metric(grouping, weights):
    """Three quarters of every release, says the toy metric."""
    return 0.75
''',
}
LINES = [  # the registry, the line before, and the line that is added; a metric, being a function, is also imported
    ("models", '        "k-anonymity": "k_anonymity:KAnonymity",', '        "toy-model": "toy_model:ToyModel",'),
    ("methods", '        "samarati": "samarati:Samarati",', '        "toy-method": "toy_method:ToyMethod",'),
    ("attacks", '        "linkage": "linkage:Linkage",', '        "toy-attack": "toy_attack:ToyAttack",'),
    ("metrics", "    __name__,\n    (", '        Metric("toy-metric", toy_metric, "always the same", "low"),'),
    ("metrics", "from maskwright.metrics.queries import query_error",
     "from maskwright.metrics.toy_metric import toy_metric"),
]  # fmt: skip
EVERYWHERE = """
import contextlib, importlib.util, io, json, sys
import maskwright as mw
from maskwright.cli import main
from maskwright.workbench import forms

source, folder, build = sys.argv[1:]
listed = {}
for kind in ("models", "methods", "attacks", "metrics"):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main([kind]) == 0
    listed[kind] = said.getvalue()
with contextlib.redirect_stdout(io.StringIO()) as said:
    assert main(["schema"]) == 0
spec = importlib.util.spec_from_file_location("docs_build", build)
pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)
mw.anonymize(source, "policy.yaml", folder)
every_form = (*forms.model_forms().values(), *forms.method_forms().values())
fields = {form.name: [f.name for f in form.fields] for form in every_form}
print(json.dumps({"package": mw.__file__, "listed": listed, "schema": said.getvalue(), "forms": fields,
                  "index": pages.reference()}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each surface of the copy shows, with the report and the record of a release made by the four toys."""
    folder = tmp_path_factory.mktemp("toys")
    package = folder / "src" / "maskwright"
    shutil.copytree(Path(maskwright.__file__).parent, package)
    for name, text in FILES.items():
        (package / name).write_text(text, encoding="utf-8")
    for kind, before, added in LINES:
        registry = package / kind / "__init__.py"
        text = registry.read_text(encoding="utf-8")
        assert text.count(f"{before}\n") == 1, f"the registry of {kind} looks different"
        registry.write_text(text.replace(f"{before}\n", f"{before}\n{added}\n"), encoding="utf-8")
    write_csv(folder / "patients.csv", patients())
    rules, _ = POLICY.split("require:")
    rules += "require: [{model: toy-model, people: 4}]\nmethod: {name: toy-method, play: 5}\n"
    (folder / "policy.yaml").write_text(rules, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", EVERYWHERE, "patients.csv", "release", str(ROOT / "docs" / "build.py")],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(package.parent)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown: dict[str, Any] = json.loads(done.stdout)
    assert Path(shown["package"]).parent == package
    shown["report"] = (folder / "release/private/report.html").read_text(encoding="utf-8")
    shown["record"] = json.loads((folder / "release/private/manifest.json").read_text(encoding="utf-8"))
    return shown


@pytest.mark.parametrize("kind", ["models", "methods", "attacks", "metrics"])
def test_it_is_in_the_command_line_and_the_index_of_the_docs(kind: str, found: dict[str, Any]) -> None:
    name = f"toy-{kind[:-1]}"
    [line] = [line for line in found["listed"][kind].splitlines() if line.startswith(f"{name} ")]
    assert line.endswith(f"says the toy {kind[:-1]}.")
    [row] = [row for row in found["index"].splitlines() if row.startswith(f"| [{name}](")]
    assert f"says the toy {kind[:-1]}. |" in row


def test_it_is_in_the_schema_and_the_forms_of_the_workbench(found: dict[str, Any]) -> None:
    properties = json.loads(found["schema"])["properties"]
    [model] = [
        c for c in properties["require"]["items"]["oneOf"] if "toy-model" in str(c["properties"]["model"])
    ]
    assert model["required"] == ["model", "people"]
    names, *methods = properties["method"]["oneOf"]
    assert "toy-method" in names["enum"]
    [method] = [c for c in methods if c["properties"]["name"] == {"const": "toy-method"}]
    assert method["properties"]["play"]["default"] == 3
    assert found["forms"]["toy-model"] == ["people", "use"]
    assert found["forms"]["toy-method"] == ["play"]


def test_it_is_in_the_release_and_its_report(found: dict[str, Any]) -> None:
    record, report = found["record"], found["report"]
    assert record["metrics"]["toy-metric"] == 0.75
    [belief] = [b for b in record["beliefs"] if b["attack"] == "toy-attack"]
    assert belief["worst"]["after"] == "1/7"
    for words in ("toy-model", "says the toy model.", "toy-method", "toy-attack", "a child", "toy-metric",
                  "says the toy metric.", "always the same"):  # fmt: skip
        assert words in report, words
