"""Bad input gets one clear line, the right exit code, and nothing is written. In process, for speed."""

from __future__ import annotations

from pathlib import Path

import pytest

from maskwright.cli import commands
from tests.patients import HEADER, POLICY, leftovers, patients, write_csv


class Case:
    """Runs `anonymize` in this process and looks at what a user would see."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.table = write_csv(folder / "patients.csv", patients())
        self.policy = folder / "policy.yaml"
        self.policy.write_text(POLICY, encoding="utf-8")

    def refuses(self, code: int, *words: str, output: str = "release") -> str:
        before = sorted(p.name for p in self.folder.iterdir())
        arguments = ["anonymize", str(self.table), "-p", str(self.policy), "-o", str(self.folder / output)]
        found = commands.main([*arguments, "--no-alternatives"])  # those have lines of their own
        captured = self.capsys.readouterr()
        lines = [line for line in captured.err.splitlines() if not line.startswith("note: ")]
        assert found == code, captured.err
        assert len(lines) == 1, captured.err
        assert lines[0].startswith("maskwright: ")
        assert "Traceback" not in captured.err
        for word in words:
            assert word in lines[0], lines[0]
        assert sorted(p.name for p in self.folder.iterdir()) == before, "something was written"
        assert not leftovers(self.folder)
        return lines[0]

    def edit(self, old: str, new: str) -> None:
        text = self.policy.read_text(encoding="utf-8")
        assert old in text
        self.policy.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Case:
    return Case(tmp_path, capsys)


def test_the_case_is_good_without_a_fault(case: Case) -> None:
    arguments = ["anonymize", str(case.table), "-p", str(case.policy), "-o", str(case.folder / "release")]
    assert commands.main(arguments) == 0


def test_missing_file(case: Case) -> None:
    case.table.unlink()
    case.refuses(2, "patients.csv")


def test_empty_file(case: Case) -> None:
    case.table.write_bytes(b"")
    case.refuses(2, "patients.csv", "empty")


def test_header_only(case: Case) -> None:
    case.table.write_text(",".join(HEADER) + "\n")
    case.refuses(2, "patients.csv", "no rows")


def test_ragged_rows_name_the_line(case: Case) -> None:
    lines = case.table.read_text().splitlines()
    lines[7] += ",surplus"
    case.table.write_text("\n".join(lines) + "\n")
    case.refuses(2, "line 8")


def test_short_rows_name_the_line(case: Case) -> None:
    lines = case.table.read_text().splitlines()
    lines[11] = lines[11].rsplit(",", 1)[0]
    case.table.write_text("\n".join(lines) + "\n")
    case.refuses(2, "line 12")


def test_wrong_encoding(case: Case) -> None:
    rows = patients()
    rows[3][4] = "Müdigkeit"
    write_csv(case.table, rows)
    case.table.write_bytes(case.table.read_text(encoding="utf-8").encode("latin-1"))
    case.refuses(2, "encoding")


def test_wrong_encoding_is_read_when_the_policy_says_so(case: Case) -> None:
    rows = patients()
    rows[3][4] = "Müdigkeit"
    write_csv(case.table, rows)
    case.table.write_bytes(case.table.read_text(encoding="utf-8").encode("latin-1"))
    case.edit("version: 1", "version: 1\ninput: {encoding: latin-1}")
    arguments = ["anonymize", str(case.table), "-p", str(case.policy), "-o", str(case.folder / "release")]
    assert commands.main(arguments) == 0
    assert "Müdigkeit" in (case.folder / "release/public/data.csv").read_text(encoding="utf-8")


def test_duplicate_column_names(case: Case) -> None:
    write_csv(case.table, patients(), ["name", "age", "zip", "sex", "disease", "disease"])
    case.refuses(2, "disease", "twice")


def test_a_column_of_the_policy_that_the_table_lacks(case: Case) -> None:
    case.edit("  ward: {role: insensitive, near_unique: allow}", "  wards: insensitive")
    case.refuses(2, "'wards'", "did you mean 'ward'")


def test_columns_that_the_policy_lacks_are_dropped_and_named(case: Case) -> None:
    case.edit("  ward: {role: insensitive, near_unique: allow}\n", "")
    arguments = ["anonymize", str(case.table), "-p", str(case.policy), "-o", str(case.folder / "release")]
    assert commands.main(arguments) == 0
    assert "not published: ward" in case.capsys.readouterr().err
    header = (case.folder / "release/public/data.csv").read_text().splitlines()[0]
    assert header == "age,zip,sex,disease"


def test_a_value_that_its_hierarchy_does_not_list(case: Case) -> None:
    (case.folder / "sex.csv").write_text("m;*\n")
    case.edit("hierarchy: suppress", "hierarchy: {file: sex.csv}")
    case.refuses(2, "'sex'", "'f'")


def test_a_hierarchy_that_does_not_nest_names_the_two_values(case: Case) -> None:
    rows = [
        "13000;130;1;*",
        "13002;130;1;*",
        "13004;130;2;*",
        "13011;131;2;*",
        "13013;131;2;*",
        "13001;131;2;*",
    ]
    rows += ["13003;131;2;*", "13010;131;2;*", "13012;131;2;*", "13014;131;2;*"]
    (case.folder / "zip.csv").write_text("\n".join(rows) + "\n")
    case.edit("{mask: right}", "{file: zip.csv}")
    case.refuses(2, "'zip'", "'13000'", "'13004'")


def test_a_hierarchy_file_that_is_missing(case: Case) -> None:
    case.edit("{mask: right}", "{file: nowhere.csv}")
    case.refuses(2, "nowhere.csv")


def test_k_larger_than_the_table(case: Case) -> None:
    case.edit("k: 4", "k: 41")
    case.refuses(1, "k-anonymity", "40")


def test_an_impossible_requirement_says_which_and_how_close(case: Case) -> None:
    case.edit("l: 2", "l: 5")
    line = case.refuses(1, "simple-l-diversity", "disease")
    assert "l: " in line, "the nearest setting is named"


def test_no_quasi_identifier(case: Case) -> None:
    text = case.policy.read_text()
    lines = [line for line in text.splitlines() if "quasi-identifier" not in line]
    case.policy.write_text("\n".join(lines) + "\n")
    case.refuses(2, "quasi-identifier")


def test_all_rows_suppressed(case: Case) -> None:
    case.edit("suppression: 5%", "suppression: 100%")
    case.edit("{intervals: [5, 10, 20]}", "suppress, levels: [0]")
    case.edit("{mask: right}", "suppress, levels: [0]")
    case.edit("k: 4", "k: 5")
    case.refuses(1, "k-anonymity", "40 of 40 groups")


def test_existing_destination(case: Case) -> None:
    (case.folder / "release").mkdir()
    (case.folder / "release" / "thesis.txt").write_text("mine")
    case.refuses(2, "release")
    assert (case.folder / "release" / "thesis.txt").read_text() == "mine"


def test_overwrite_never_replaces_a_folder_that_is_not_a_release(case: Case) -> None:
    (case.folder / "mine").mkdir()
    arguments = ["anonymize", str(case.table), "-p", str(case.policy), "-o", str(case.folder / "mine")]
    assert commands.main([*arguments, "--overwrite"]) == 2
    assert "not a Maskwright release" in case.capsys.readouterr().err


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write to")
def test_unwritable_destination(case: Case) -> None:
    case.refuses(2, "/proc/self", "writ", output="/proc/self/release")


def test_destination_without_a_parent(case: Case) -> None:
    case.refuses(2, "does not exist", output="no/such/place")


def test_a_policy_with_unknown_keys(case: Case) -> None:
    case.edit("require:", "requires:")
    case.refuses(2, "unknown key 'requires'", "did you mean 'require'")


def test_unknown_keys_further_down(case: Case) -> None:
    case.edit("k: 4", "kk: 4")
    case.refuses(2, "require[0]", "'kk'")


def test_an_unknown_model(case: Case) -> None:
    case.edit("model: k-anonymity", "model: k-anonimity")
    case.refuses(2, "k-anonimity", "did you mean 'k-anonymity'")


def test_an_unknown_method(case: Case) -> None:
    case.edit("name: optimal-lattice", "name: optimal-latice")
    case.refuses(2, "did you mean 'optimal-lattice'")


def test_a_policy_that_is_no_yaml(case: Case) -> None:
    case.policy.write_text("columns: [unclosed\n")
    case.refuses(2, "policy.yaml", "not valid YAML")


def test_a_missing_policy(case: Case) -> None:
    case.policy.unlink()
    # the policy file itself is gone, so compare only what remains
    case.refuses(2, "policy.yaml", "cannot be read")


def test_a_near_unique_insensitive_column(case: Case) -> None:
    case.edit("name: identifier", "name: insensitive")
    case.refuses(2, "'name'", "singles people out")


def test_a_level_that_does_not_exist(case: Case) -> None:
    case.edit("{intervals: [5, 10, 20]}", "{intervals: [5, 10, 20]}, levels: [7]")
    case.refuses(2, "'age'", "'7'")


def test_a_sensitive_model_without_a_sensitive_column(case: Case) -> None:
    case.edit("  disease: sensitive\n", "")
    case.refuses(2, "require[1]", "sensitive")


def test_a_number_that_is_none(case: Case) -> None:
    case.edit("k: 4", "k: many")
    case.refuses(2, "require[0].k", "many")


def test_messages_never_show_an_identifier(case: Case) -> None:
    case.edit("name: identifier", "name: {role: quasi-identifier, hierarchy: {intervals: [5]}}")
    case.edit("  age:", "  ward: {role: insensitive, near_unique: allow}\n  age:")
    case.edit("  ward: {role: insensitive, near_unique: allow}\nrequire", "require")
    case.refuses(2, "'name'")  # a quasi-identifier may be named; next: as an identifier it may not
    case.edit("name: {role: quasi-identifier, hierarchy: {intervals: [5]}}", "name: identifier")
    case.edit("k: 4", "k: 41")
    assert "P0" not in case.refuses(1, "k-anonymity")
