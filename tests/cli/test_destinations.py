"""What is replaced and what never is: foreign files, and everything that a command reads."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import maskwright as mw
from maskwright.cli import commands
from maskwright.errors import DestinationError
from maskwright.folder import store
from maskwright.workbench.workspace import Workspace
from tests.patients import POLICY, Command, Outcome, leftovers, patients, write_csv

Change = Callable[[Path], None]


def everything(folder: Path) -> dict[str, bytes | str]:
    """Every file below a folder with its content, and links with where they lead."""
    return {
        p.relative_to(folder).as_posix(): str(p.readlink()) if p.is_symlink() else p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_symlink() or p.is_file()
    }


def react_app(folder: Path) -> None:
    """What create-react-app makes, as far as it looks like a release."""
    (folder / "public").mkdir(parents=True)
    (folder / "src").mkdir()
    manifest = {"short_name": "React App", "icons": [], "start_url": ".", "display": "standalone"}
    (folder / "public" / "manifest.json").write_text(json.dumps(manifest))
    (folder / "src" / "App.js").write_text("export default App;")


def edited(**changes: object) -> Change:
    """A release whose public manifest says something else; None takes a field away."""

    def change(release: Path) -> None:
        path = release / "public" / "manifest.json"
        fields = json.loads(path.read_text()) | changes
        path.write_text(json.dumps({k: v for k, v in fields.items() if v is not None}))

    return change


def added(name: str) -> Change:
    def change(release: Path) -> None:
        (release / name).parent.mkdir(parents=True, exist_ok=True)
        (release / name).write_text("mine")

    return change


def linked(name: str) -> Change:
    """A file of a release becomes a link to somebody's file."""

    def change(release: Path) -> None:
        (release / name).rename(release.parent / "elsewhere")
        (release / name).symlink_to(release.parent / "elsewhere")

    return change


def without_private_manifest(release: Path) -> None:
    (release / "private" / "manifest.json").unlink()


@pytest.fixture
def maskwright(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The command in this process, in the test's folder."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: object) -> Outcome:
        words = [str(argument) for argument in arguments]
        code = commands.main(words)
        said = capsys.readouterr()
        return Outcome(subprocess.CompletedProcess(words, code, said.out, said.err))

    return command


@pytest.fixture
def release(maskwright: Command, table: Path, policy: Path, tmp_path: Path) -> Path:
    assert maskwright("anonymize", table, "-p", policy, "-o", "release").code == 0
    return tmp_path / "release"


@pytest.mark.parametrize("command", ["anonymize", "demo", "demo --overwrite"])
def test_a_react_app_is_not_a_release(
    maskwright: Command, table: Path, policy: Path, tmp_path: Path, command: str
) -> None:
    react_app(tmp_path / "my-app")
    before = everything(tmp_path)
    words = command.split()
    if command == "anonymize":
        words += [str(table), "-p", str(policy), "--overwrite"]
    done = maskwright(*words, "-o", "my-app")
    assert done.code == 2
    assert "not a Maskwright release" in done.error
    assert everything(tmp_path) == before


def a_file(place: Path) -> None:
    place.write_text("thesis")


def linked_to_a_file(place: Path) -> None:
    place.symlink_to(place.parent / "table.csv")


def linked_to_nothing(place: Path) -> None:
    place.symlink_to("nowhere")


def a_workspace(place: Path) -> None:
    Workspace(place).close()


# what may lie where somebody wants a folder, besides a release or a comparison
PLACES = {
    "react app": (react_app, "not a"),
    "empty folder": (Path.mkdir, "not a"),
    "file": (a_file, "not a"),
    "link": (linked_to_a_file, "is a link to another place"),
    "link to nothing": (linked_to_nothing, "is a link to another place"),
    "workspace": (a_workspace, "not a"),
}


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_every_command_leaves_what_is_not_its_own(
    maskwright: Command, table: Path, policy: Path, tmp_path: Path, place: str, overwrite: bool
) -> None:
    """Demo, anonymize and compare, by the command and in Python: refused in one line, and nothing is touched."""
    make, named = PLACES[place]
    make(tmp_path / "place")
    before = everything(tmp_path)
    for words in (["demo"], ["anonymize", table, "-p", policy], ["compare", table, "-p", policy]):
        done = maskwright(*words, "-o", "place", *(["--overwrite"] if overwrite else []))
        assert done.code == 2, words
        assert named in done.error
        assert len(done.err.splitlines()) == 1
        assert "-o" in done.error
    for made in (mw.anonymize(table, policy), mw.compare(table, policy)):
        with pytest.raises(DestinationError, match=named):
            made.save(tmp_path / "place", overwrite=overwrite)
    assert everything(tmp_path) == before
    assert (tmp_path / "place").exists() or (tmp_path / "place").is_symlink()
    assert not leftovers(tmp_path)


def test_a_release_is_no_comparison_and_a_comparison_no_release(
    maskwright: Command, table: Path, policy: Path, release: Path, tmp_path: Path
) -> None:
    compare = ["compare", table, "-p", policy, "--overwrite", "-o"]
    assert maskwright(*compare, "comparison").code == 0
    before = everything(tmp_path)
    assert "not a comparison" in maskwright(*compare, "release").error
    for words in (["demo"], ["anonymize", table, "-p", policy]):
        assert "not a Maskwright release" in maskwright(*words, "--overwrite", "-o", "comparison").error
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    "change",
    [added("public/extra.csv"), added("private/notes.txt"), added("src/App.js"), linked("public/data.csv")],
)
def test_the_demo_leaves_what_was_added_to_a_release(
    maskwright: Command, release: Path, tmp_path: Path, change: Change
) -> None:
    change(release)
    before = everything(tmp_path)
    for more in ([], ["--overwrite"]):
        done = maskwright("demo", "-o", "release", *more)
        assert done.code == 2
        assert "holds files that are not of that release" in done.error
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (edited(format=None), "not a Maskwright release"),
        (edited(format=2), "not a Maskwright release"),
        (edited(product="another 1.0"), "not a Maskwright release"),
        (edited(tables=None), "not a Maskwright release"),
        (edited(files=["data.csv"]), "not a Maskwright release"),
        (added("thesis.txt"), "'thesis.txt'"),
        (added("public/extra.csv"), "'public/extra.csv'"),
        (added("private/notes.txt"), "'private/notes.txt'"),
        (added("src/deep/App.js"), "'src/deep/App.js'"),
        (added(".git/HEAD"), "'.git/HEAD'"),
        (linked("public/data.csv"), "'public/data.csv (a link)'"),
        (without_private_manifest, "'private/policy.yaml'"),
    ],
)
def test_only_a_whole_release_of_ours_is_replaced(
    maskwright: Command, table: Path, policy: Path, release: Path, tmp_path: Path, change: Change, named: str
) -> None:
    change(release)
    before = everything(tmp_path)
    done = maskwright("anonymize", table, "-p", policy, "-o", "release", "--overwrite")
    assert done.code == 2
    assert named in done.error
    assert "choose another place with -o" in done.error
    made = mw.anonymize(table, policy)
    with pytest.raises(DestinationError, match="choose another place"):
        made.save(release, overwrite=True)
    assert everything(tmp_path) == before
    assert not leftovers(tmp_path)


def test_many_foreign_files_are_one_line(release: Path) -> None:
    for number in range(50):
        added(f"src/{number:02}.js")(release)
    with pytest.raises(DestinationError, match=r"'src/00.js', 'src/01.js', 'src/02.js' and 47 more"):
        store.check_destination(release, overwrite=True)


@pytest.mark.parametrize("keep", ["all", "report", "none"])
def test_releases_are_replaced_whatever_they_keep(
    maskwright: Command, table: Path, policy: Path, keep: str
) -> None:
    for _ in range(2):
        done = maskwright(
            "anonymize", table, "-p", policy, "-o", "release", "--overwrite", "--keep-private", keep
        )
        assert done.code == 0, done.err


def test_a_release_of_the_first_version_counts(tmp_path: Path) -> None:
    """As 0.1 wrote it: no recoding, no parts, no sets."""
    for part in ("public", "private"):
        (tmp_path / "r" / part).mkdir(parents=True)
        (tmp_path / "r" / part / "data.csv").write_text("age\n1\n")
    product = {"product": "maskwright 0.1.0", "files": {"data.csv": "0" * 64}}
    table = {"file": "data.csv", "format": "csv", "rows": 1, "columns": ["age"], "quasi_identifiers": ["age"]}
    public = {"format": 1, "tables": [table], "promised": [], "unit": False, "seeded": False, **product}
    (tmp_path / "r/public/manifest.json").write_text(json.dumps(public))
    (tmp_path / "r/private/manifest.json").write_text(json.dumps({"ok": True, **product}))
    store.check_destination(tmp_path / "r", overwrite=True)


def test_the_demo_replaces_its_own_release_only(maskwright: Command, tmp_path: Path) -> None:
    for _ in range(2):
        assert "maskwright-demo/public" in maskwright("demo").out
    added("notes.txt")(tmp_path / "maskwright-demo")
    before = everything(tmp_path / "maskwright-demo")
    assert "maskwright-demo-2/public" in maskwright("demo").out
    again = maskwright("demo", "-o", "maskwright-demo-2")
    assert again.code == 2
    assert "use --overwrite" in again.error
    assert maskwright("demo", "-o", "maskwright-demo-2", "--overwrite").code == 0
    assert everything(tmp_path / "maskwright-demo") == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["maskwright-demo", "maskwright-demo-2"]


def test_the_demo_leaves_a_release_of_another_table_alone(
    maskwright: Command, table: Path, policy: Path, tmp_path: Path
) -> None:
    assert maskwright("anonymize", table, "-p", policy, "-o", "maskwright-demo").code == 0
    before = everything(tmp_path / "maskwright-demo")
    assert "maskwright-demo-2/public" in maskwright("demo").out
    assert everything(tmp_path / "maskwright-demo") == before


def test_a_link_is_no_destination(
    maskwright: Command, table: Path, policy: Path, release: Path, tmp_path: Path
) -> None:
    (tmp_path / "current").symlink_to("release")
    before = everything(tmp_path)
    for more in ([], ["--overwrite"]):
        done = maskwright("anonymize", table, "-p", policy, "-o", "current", *more)
        assert done.code == 2
        assert "is a link to another place" in done.error
        assert everything(tmp_path) == before


# --- what is read is never replaced ------------------------------------------------------------------


def through_a_link(path: Path, folder: Path) -> str:
    (folder / "link").symlink_to(path)
    return "link"


def through_a_linked_folder(path: Path, folder: Path) -> str:
    (folder / "linked").symlink_to(path.parent)
    return f"linked/{path.name}"


def upwards(path: Path, folder: Path) -> str:
    (folder / "sub").mkdir()
    return "sub/../" + path.relative_to(folder).as_posix()


NAMES = {
    "absolute": lambda path, folder: str(path),
    "relative": lambda path, folder: path.relative_to(folder).as_posix(),
    "upwards": upwards,
    "link": through_a_link,
    "linked folder": through_a_linked_folder,
}


@pytest.mark.parametrize("way", NAMES)
def test_the_input_is_never_inside_of_what_is_replaced(
    maskwright: Command, table: Path, policy: Path, release: Path, tmp_path: Path, way: str
) -> None:
    inside = release / "public" / "data.csv"  # listed in the manifest: as a release it could be replaced
    inside.write_bytes(table.read_bytes())
    name = NAMES[way](inside, tmp_path)
    before = everything(tmp_path)
    done = maskwright("anonymize", name, "-p", policy, "-o", "release", "--overwrite")
    assert done.code == 2
    assert f"the input '{name}' lies in" in done.error
    made = mw.anonymize(tmp_path / name, policy)
    with pytest.raises(DestinationError, match="the input"):
        made.save(release, overwrite=True)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("into", ["linked/release", "sub/../release", "release/", "./release"])
def test_however_the_destination_is_named(
    maskwright: Command, policy: Path, release: Path, tmp_path: Path, table: Path, into: str
) -> None:
    (tmp_path / "linked").symlink_to(tmp_path)
    (tmp_path / "sub").mkdir()
    inside = release / "public" / "data.csv"
    inside.write_bytes(table.read_bytes())
    before = everything(release)
    done = maskwright("anonymize", inside, "-p", policy, "-o", into, "--overwrite")
    assert done.code == 2
    assert "lies in" in done.error
    assert everything(release) == before


def test_a_second_name_of_the_same_file_is_noticed(
    maskwright: Command, policy: Path, release: Path, tmp_path: Path, table: Path
) -> None:
    """By a hard link; by a mount of a folder inside, no path tells, and nothing but the file would be left."""
    inside = release / "private" / "policy.yaml"
    inside.write_bytes(policy.read_bytes())
    (tmp_path / "again.yaml").hardlink_to(inside)
    before = everything(tmp_path)
    done = maskwright("anonymize", table, "-p", "again.yaml", "-o", "release", "--overwrite")
    assert done.code == 2
    assert "the input 'again.yaml' lies in" in done.error
    assert everything(tmp_path) == before


def test_a_folder_inside_that_is_mounted_elsewhere_is_noticed(
    maskwright: Command, policy: Path, release: Path, tmp_path: Path, table: Path
) -> None:
    inside = release / "private" / "policy.yaml"
    inside.write_bytes(policy.read_bytes())
    (tmp_path / "mounted").mkdir()
    mount = ["mount", "--bind", str(release / "private"), str(tmp_path / "mounted")]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user may not mount folders")
    try:
        before = everything(release)
        done = maskwright("anonymize", table, "-p", "mounted/policy.yaml", "-o", "release", "--overwrite")
        assert done.code == 2
        assert "the input 'mounted/policy.yaml' lies in" in done.error
        assert everything(release) == before
    finally:
        subprocess.run(["umount", str(tmp_path / "mounted")], check=True)


@pytest.mark.parametrize("way", NAMES)
def test_nor_is_the_policy(maskwright: Command, table: Path, release: Path, tmp_path: Path, way: str) -> None:
    name = NAMES[way](release / "private" / "policy.yaml", tmp_path)
    before = everything(tmp_path)
    done = maskwright("anonymize", table, "-p", name, "-o", "release", "--overwrite")
    assert done.code == 2
    assert f"the input '{name}' lies in" in done.error
    assert everything(tmp_path) == before


@pytest.mark.parametrize("what", ["hierarchy", "population"])
def test_nor_is_what_the_policy_names(
    maskwright: Command, table: Path, policy: Path, release: Path, tmp_path: Path, what: str
) -> None:
    inside = release / "public" / "data.csv"
    if what == "hierarchy":
        inside.write_text("m;*\nf;*\n")
        policy.write_text(POLICY.replace("hierarchy: suppress", "hierarchy: {file: release/public/data.csv}"))
    else:
        inside.write_bytes(table.read_bytes())
        policy.write_text(POLICY + "population: {file: release/public/data.csv}\n")
    before = everything(tmp_path)
    done = maskwright("anonymize", table, "-p", policy, "-o", "release", "--overwrite")
    assert done.code == 2
    assert "release/public/data.csv' lies in" in done.error
    assert everything(tmp_path) == before


def test_nor_is_a_folder_of_parquet_files(policy: Path, release: Path, tmp_path: Path) -> None:
    mw.anonymize(write_csv(tmp_path / "p.csv", patients()), policy).table.write_parquet(
        str(release / "public" / "data.csv")
    )
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "0.parquet").symlink_to(release / "public" / "data.csv")
    before = everything(tmp_path)
    with pytest.raises(DestinationError, match=r"parts/0\.parquet' lies in"):
        mw.anonymize(tmp_path / "parts", policy, release, overwrite=True)
    assert everything(tmp_path) == before


def test_a_comparison_replaces_comparisons_only(
    maskwright: Command, table: Path, policy: Path, tmp_path: Path
) -> None:
    def compare(*more: object) -> tuple[int, str]:
        done = maskwright("compare", table, "-o", "out", "--overwrite", "--grid", "k=2,4", *more)
        return done.code, done.err

    (tmp_path / "out" / "src").mkdir(parents=True)
    (tmp_path / "out" / "comparison.json").write_text('{"points": []}')
    (tmp_path / "out" / "src" / "App.js").write_text("mine")
    before = everything(tmp_path)
    code, text = compare("-p", policy)
    assert code == 2
    assert "not a comparison" in text
    assert everything(tmp_path) == before
    (tmp_path / "out").rename(tmp_path / "mine")
    for _ in range(2):
        assert compare("-p", policy)[0] == 0
    chosen = next((tmp_path / "out" / "policies").iterdir())
    for more, named in (
        (["-p", chosen], "lies in"),
        (["-p", policy], "'src/App.js'"),
    ):
        if named == "'src/App.js'":
            added("src/App.js")(tmp_path / "out")
        before = everything(tmp_path)
        code, text = compare(*more)
        assert (code, named in text) == (2, True), text
        assert everything(tmp_path) == before
    found = mw.compare(table, chosen)
    (tmp_path / "out" / "src" / "App.js").unlink()
    with pytest.raises(DestinationError, match="lies in"):
        found.save(tmp_path / "out", overwrite=True)


def test_init_and_audit_do_not_write_over_what_they_read(
    maskwright: Command, table: Path, policy: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(table)
    before = everything(tmp_path)
    for command in (
        ["init", table, "-o", table, "--overwrite"],
        ["init", table, "-o", "link", "--overwrite"],
        ["audit", table, "--qi", "sex", "--html", "link"],
        ["audit", table, "--qi", "sex", "--original", "link", "--html", table],
        ["audit", table, "-p", policy, "--html", policy],
    ):
        done = maskwright(*command)
        assert done.code == 2, command
        assert "would be replaced" in done.error
        assert everything(tmp_path) == before


@pytest.mark.parametrize("what", ["original", "population", "sensitive_table", "hierarchy"])
def test_an_audit_does_not_write_over_any_file_that_it_reads(
    maskwright: Command, table: Path, policy: Path, tmp_path: Path, what: str
) -> None:
    other = tmp_path / "other.csv"
    other.write_bytes(b"m;*\nf;*\n" if what == "hierarchy" else table.read_bytes())
    words: list[object] = ["audit", table, "--html", "sub/../other.csv"]
    (tmp_path / "sub").mkdir()
    if what == "hierarchy":
        policy.write_text(POLICY.replace("hierarchy: suppress", "hierarchy: {file: other.csv}"))
        words += ["-p", policy]
    else:
        words += ["--qi", "sex", f"--{what.replace('_', '-')}", "other.csv"]
    before = everything(tmp_path)
    done = maskwright(*words)
    assert done.code == 2
    assert "would be replaced" in done.error
    assert everything(tmp_path) == before


def test_init_and_audit_replace_their_own_kind_only(
    maskwright: Command, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of somebody else stays, also one that came while they were at work; a second run replaces the first."""
    init = ["init", table, "-o", "made", "--overwrite"]
    audit = ["audit", table, "--qi", "sex", "--html", "made"]
    for words, kind in ((init, "a policy"), (audit, "an audit")):
        made = tmp_path / "made"
        for _ in range(2):
            assert maskwright(*words).code in (0, 1)
        made.write_text("thesis")
        done = maskwright(*words)
        assert done.code == 2
        assert f"'made' exists and is not {kind}; choose another name" in done.error
        assert made.read_text() == "thesis"
        made.unlink()

    def slowly(*_: object) -> str:
        (tmp_path / "made").write_text("thesis")
        return "<!doctype html>"

    monkeypatch.setattr("maskwright.auditing.result.Audit.html", slowly)
    done = maskwright(*audit)
    assert "is not an audit" in done.error
    assert (tmp_path / "made").read_text() == "thesis"


def test_a_column_called_file_is_not_a_file(policy: Path) -> None:
    values = mw.Policy.load(policy).to_dict()
    values["columns"]["file"] = "identifier"
    assert mw.Policy.load(values).with_files(str.upper).to_dict() == values


@pytest.mark.parametrize("keep", ["all", "report"])
def test_the_policy_of_a_release_can_be_run_again(
    maskwright: Command, table: Path, policy: Path, tmp_path: Path, keep: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "sex.csv").write_text("m;person;*\nf;person;*\n")
    (tmp_path / "people.csv").write_bytes(table.read_bytes())
    policy.write_text(
        POLICY.replace("hierarchy: suppress", "hierarchy: {file: sub/sex.csv}")
        + "population: {file: people.csv}\n"
    )
    first = maskwright("anonymize", table, "-p", policy, "-o", "release", "--keep-private", keep, "--seed", 1)
    assert first.code == 0, first.err
    (tmp_path / "sub" / "sex.csv").unlink()
    (tmp_path / "release").rename(tmp_path / "moved")
    again = maskwright("anonymize", table, "-p", "moved/private/policy.yaml", "-o", "again", "--seed", 1)
    assert again.code == 0, again.err
    assert maskwright("verify", "moved").code == 0
    one, two = ((tmp_path / name / "public/data.csv").read_bytes() for name in ("moved", "again"))
    assert one == two


def test_a_release_is_saved_after_its_hierarchies_are_gone(table: Path, policy: Path, tmp_path: Path) -> None:
    (tmp_path / "sex.csv").write_text("m;*\nf;*\n")
    policy.write_text(POLICY.replace("hierarchy: suppress", "hierarchy: {file: sex.csv}"))
    made = mw.anonymize(table, policy)
    (tmp_path / "sex.csv").unlink()
    made.save(tmp_path / "release")
    assert str(tmp_path / "sex.csv") in (tmp_path / "release/private/policy.yaml").read_text()
