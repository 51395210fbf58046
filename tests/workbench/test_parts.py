"""The pieces of the workbench on their own: forms from docstrings, trees as text, what the shell command says."""

from __future__ import annotations

import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright import workbench
from maskwright.domain.settings import build_registered
from maskwright.errors import PolicyError
from maskwright.hierarchies import Tree
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.policy.policy import Policy
from maskwright.workbench import forms
from maskwright.workbench.api.projects import safe_name
from maskwright.workbench.hierarchy_editor import (
    as_tree_text,
    built_hierarchy,
    check_inside,
    text_of_tree,
    tree_of,
)
from maskwright.workbench.pages import as_share, docstring_markup, shown_number, templates
from maskwright.workbench.roots import Roots


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_has_a_form_that_makes_it(name: str) -> None:
    """What the form offers at first is a valid requirement, and every field is explained."""
    form = forms.model_forms()[name]
    assert form.summary.endswith(".")
    for field in form.fields:
        assert field.help, f"{name}.{field.name} is not explained"
    offered = {f.name: f.default for f in form.fields} | dict(form.offered)
    model = build_registered(MODELS, "model", name, form.read(offered, "here"), "here")
    again = form.read(
        form.shown({k: v for k, v in model.model_dump(mode="json").items() if v is not None}), "here"
    )
    assert build_registered(MODELS, "model", name, again, "here") == model


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_has_a_form_that_makes_it(name: str) -> None:
    form = forms.method_forms()[name]
    for field in form.fields:
        assert field.help, f"{name}.{field.name} is not explained"
    given_ = {f.name: f.default or ("2" if f.required else "") for f in form.fields}
    built_ = build_registered(METHODS, "method", name, form.read(given_, "here"), "here")
    assert built_.name == name


def test_recodings_are_explained() -> None:
    assert list(forms.recoding_summaries()) == ["generalise", "bucketize", "permute"]
    assert all(text.endswith(".") for text in forms.recoding_summaries().values())


def test_defaults_are_left_out_and_lists_are_read() -> None:
    form = forms.model_forms()["simple-l-diversity"]
    read = form.read({"l": "3", "attribute": "", "use": "gate", "values": "[HIV, flu]"}, "here")
    assert read == {"l": "3", "use": "gate", "values": ["HIV", "flu"]}
    assert form.read({"l": "3", "use": "search"}, "here") == {"l": "3"}
    with pytest.raises(PolicyError, match=r"here\.values: write a list"):
        form.read({"values": "[HIV"}, "here")


names = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=6)


@st.composite
def trees(draw: st.DrawFn) -> Any:
    """A tree of lists and one-name mappings, without two nodes of one name."""
    used: set[str] = set()

    def fresh() -> str:
        name = draw(names.filter(lambda n: n not in used))
        used.add(name)
        return name

    def node(depth: int) -> Any:
        if depth == 0 or draw(st.booleans()):
            return fresh()
        return {fresh(): [node(depth - 1) for _ in range(draw(st.integers(1, 3)))]}

    return [node(3) for _ in range(draw(st.integers(1, 4)))]


@given(trees())
def test_trees_survive_the_way_through_text(tree: Any) -> None:
    assert tree_of(text_of_tree(tree)) == tree


def test_trees_with_tabs_and_blank_lines() -> None:
    assert tree_of("a\n\n\tb\n\tc\n\t\td\ne\n") == [{"a": ["b", {"c": ["d"]}]}, "e"]
    assert tree_of("  a\n    b\n  c") == [{"a": ["b"]}, "c"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        ("  a\nb", r"line 2 \('b'\) is indented less"),
        ("a\n    b\n  c", r"line 3 \('c'\) is indented"),
        ("\n".join(" " * i + "x" for i in range(2000)), "line 32: the tree is nested more than 30 deep"),
    ],
)
def test_trees_that_are_none(text: str, word: str) -> None:
    with pytest.raises(PolicyError, match=word):
        tree_of(text)


POLICY = Policy.load({"columns": {"x": "quasi-identifier"}, "require": [{"model": "k-anonymity", "k": 2}]})


@pytest.mark.parametrize(
    ("spec", "values", "text"),
    [
        (
            {"intervals": [5, 10]},
            ["1", "3", "7", "12"],
            "0-9\n  0-4\n    1\n    3\n  5-9\n    7\n10-19\n  10-14\n    12",
        ),
        ("suppress", ["a", "b"], "a\nb"),
        ({"tree": {"n": ["a"], "m": ["b", "c"]}}, ["a", "b", "c"], "n\n  a\nm\n  b\n  c"),
    ],
)
def test_any_chain_can_be_gone_on_with_as_a_tree(
    spec: Any, values: list[str], text: str, tmp_path: Any
) -> None:
    hierarchy = built_hierarchy(spec, "x", values, POLICY, tmp_path)
    assert as_tree_text(hierarchy) == text
    again = Tree(tree=tree_of(text)).build("x", values, tmp_path, ())
    for first, second in zip(hierarchy.levels, again.levels, strict=True):
        pairs = {
            (first.blocks[i], second.blocks[again.values.index(v) + 1])
            for i, v in enumerate(hierarchy.values, 1)
        }
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def test_files_must_lie_in_the_folder(tmp_path: Any) -> None:
    inside = tmp_path / "project"
    (inside / "hierarchies" / "sub").mkdir(parents=True)
    for file in ("hierarchies/a.csv", "hierarchies/sub/a.csv", "c.csv", "../b.csv"):
        (inside / file).write_text("x", encoding="utf-8")
    (inside / "hierarchies" / "link.csv").symlink_to(tmp_path / "b.csv")
    for file in ("hierarchies/a.csv", "hierarchies/sub/a.csv"):
        check_inside(inside, "hierarchies", file, "here")
    for file in (
        "../b.csv", str(tmp_path / "b.csv"), "hierarchies/link.csv", "hierarchies/missing.csv", ".", "",
        "hierarchies", "c.csv",
        "hierarchies/a\0b", "hierarchies/" + "x" * 5000, "hierarchies/../c.csv", "hierarchies/../hierarchies/a.csv",
        "hierarchies/sub", "./hierarchies/a.csv",
    ):  # fmt: skip
        with pytest.raises(PolicyError, match="has no file"):
            check_inside(inside, "hierarchies", file, "here")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        ("1/4", "1 in 4 (25 %)"),
        ("15355/30162", "50.91 %"),
        (0.123456, "0.123456"),
        (419_123.4, "419,123"),
        ("any", "any"),
    ],
)
def test_numbers_for_people(value: Any, text: str) -> None:
    assert shown_number(value) == text


def test_shares() -> None:
    assert as_share("1/4") == Fraction(1, 4)
    assert as_share("inf") == 0 or as_share("inf") == float("inf")
    assert as_share(3) == 3


def test_docstrings_become_html_safely() -> None:
    assert docstring_markup("`*` and *any* <b> 2*3*4") == "<code>*</code> and <em>any</em> &lt;b&gt; 2*3*4"


@pytest.mark.parametrize(
    ("sent", "kept"), [("a b.csv", "a b.csv"), ("/x/y.csv", "y.csv"), ("..csv", "table.csv")]
)
def test_names_of_uploads(sent: str, kept: str) -> None:
    assert safe_name(sent) == kept


def test_nothing_of_the_web_is_imported_before_it_is_needed() -> None:
    code = "import sys; from maskwright.cli import commands; commands.command_parser(); print(sorted(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for name in ("fastapi", "uvicorn", "jinja2", "starlette"):
        assert f"'{name}'" not in found


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


TEXT = [
    ("ink", "canvas"), ("ink", "panel"), ("ink", "sunken"), ("ink", "accent-soft"), ("soft", "canvas"),
    ("soft", "panel"), ("soft", "sunken"), ("accent", "canvas"), ("accent", "panel"), ("accent", "accent-soft"),
    ("accent-ink", "accent"), ("good", "good-soft"), ("bad", "bad-soft"), ("bad", "panel"), ("note", "note-soft"),
    ("ink", "good-soft"), ("role-identifier", "canvas"), ("role-sensitive", "canvas"), ("panel", "ink"),
    ("accent", "note-soft"),
]  # fmt: skip
EDGES = [
    ("edge", "panel"),
    ("focus", "canvas"),
    ("focus", "panel"),
    ("before", "canvas"),
    ("after", "canvas"),
]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_have_enough_contrast(theme: str) -> None:
    """WCAG AA: 4.5 to 1 for text, 3 to 1 for what shows where a control is."""
    css = (Path(workbench.__file__).parent / "static" / "style.css").read_text(encoding="utf-8")
    blocks = {"light": css.split(":root {")[1], "dark": css.split(':root[data-theme="dark"] {')[1]}
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", blocks[theme].split("}")[0]))
    for pairs, least in ((TEXT, 4.5), (EDGES, 3.0)):
        for front, back in pairs:
            light, dark = sorted((luminance(colours[front]), luminance(colours[back])), reverse=True)
            ratio = (light + 0.05) / (dark + 0.05)
            assert ratio >= least, f"{front} on {back} in {theme}: {ratio:.2f}"


def test_tables_are_listed_wherever_it_was_started(tmp_path: Any) -> None:
    for i in range(30):
        (tmp_path / f"folder{i}").mkdir()
        (tmp_path / f"folder{i}" / "x.csv").write_text("a", encoding="utf-8")
    (tmp_path / "top.parquet").write_text("", encoding="utf-8")
    (tmp_path / ".hidden.csv").write_text("", encoding="utf-8")
    (tmp_path / "link.csv").symlink_to("/etc/passwd")
    listed = list(Roots.of([tmp_path]).tables(most=15))
    assert listed[0].name == "top.parquet"
    assert len(listed) == 15
    assert {p.name for p in listed[1:]} == {"x.csv"}


def test_what_the_release_adds_nothing_to_is_no_finding() -> None:
    """As in the terminal: no bars and nobody named, but the reason; beside it a finding as ever."""
    worst = {"before": "1/4", "after": "1", "whom": "row 7", "why": "whoever is left", "interval": None}
    idle = {"attack": "background", "kind": "exact", "worst": worst, "measures": {"idle": "all know it"}}
    shown = templates.env.get_template("macros.html").module.beliefs([idle])  # type: ignore[attr-defined]
    assert "no finding" in shown
    assert "because all know it" in shown
    assert "row 7" not in shown
    found = templates.env.get_template("macros.html").module.beliefs([{**idle, "measures": {}}])  # type: ignore[attr-defined]
    assert "no finding" not in found
    assert "row 7: whoever is left" in found
