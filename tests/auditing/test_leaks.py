"""The order of the rows, the container, and the comparison with the original."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maskwright as mw
from maskwright.auditing import leaks
from maskwright.auditing.original import label_reader, stands_for
from maskwright.auditing.row_order import InOrder, alike_by_chance, column_trend, sorted_inside
from maskwright.domain.hierarchy import Hierarchy
from maskwright.engines.readers.csv_files import Container
from tests.patients import POLICY, Command, patients, write_csv

QI, SENSITIVE = ["zip", "age"], ["disease"]


def texts(audit: Any, kind: str) -> list[str]:
    return [f.text for f in audit.findings if f.kind == kind]


# --- order --------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2), min_size=2, max_size=7))
def test_neighbours_by_chance_is_the_mean_over_all_orders(codes: list[int]) -> None:
    counts = np.array(list(Counter(codes).values()))
    alike = [sum(a == b for a, b in pairwise(p)) for p in permutations(codes)]
    mean, deviation = alike_by_chance(counts)
    assert mean == pytest.approx(np.mean(alike))
    assert deviation == pytest.approx(np.std(alike), abs=1e-6)


def test_random_orders_are_called_random() -> None:
    rng, called = np.random.default_rng(3), 0
    for _ in range(300):
        found = column_trend(InOrder("x", rng.integers(1, 6, 200)))
        assert found is not None
        called += not found.random
    assert called <= 1


def test_orders_that_tell_something() -> None:
    rng = np.random.default_rng(4)
    rising = column_trend(InOrder("x", np.sort(rng.integers(1, 6, 50))))
    assert rising is not None
    assert rising.sorted == "rising"
    blocks = column_trend(InOrder("x", np.repeat(rng.integers(1, 6, 60), 5)))
    assert blocks is not None
    assert not blocks.random, "households of five stay together"
    assert blocks.sorted is None
    few = column_trend(InOrder("x", np.array([1, 2, 3])))
    assert few is not None
    assert few.random, "three rows are in order by chance"


def test_sorted_inside_the_classes() -> None:
    rng = np.random.default_rng(5)
    groups, values = rng.integers(0, 10, 200), rng.integers(1, 5, 200)
    assert not sorted_inside(groups, InOrder("s", values))
    inside = values.copy()
    for g in range(10):
        inside[groups == g] = np.sort(values[groups == g])
    assert sorted_inside(groups, InOrder("s", inside))


def random_rows(n: int, seed: int = 0) -> list[list[str]]:
    pick = random.Random(seed)  # noqa: S311
    diseases = ["flu", "HIV", "none", "cancer"]
    return [[f"1{pick.randrange(3)}***", f"{d}0-{d}9", pick.choice(diseases)]
            for d in (pick.randrange(2, 6) for _ in range(n))]  # fmt: skip


def test_a_sorted_table_is_noticed(tmp_path: Path) -> None:
    header = [*QI, *SENSITIVE]
    rows = random_rows(80)
    assert not texts(mw.audit(write_csv(tmp_path / "a.csv", rows, header), QI, SENSITIVE), "order")
    by_age = sorted(rows, key=lambda r: r[1])
    [found] = texts(mw.audit(write_csv(tmp_path / "b.csv", by_age, header), QI, SENSITIVE), "order")
    assert "sorted by 'age'" in found
    everything = texts(mw.audit(write_csv(tmp_path / "c.csv", sorted(rows), header), QI, SENSITIVE), "order")
    assert any("inside every class" in t and "'disease'" in t for t in everything)


def test_ages_are_sorted_as_numbers(tmp_path: Path) -> None:
    rows = [[f"{low}-{low + 4}", str(i % 3)] for i, low in enumerate(sorted([5, 10, 15, 95, 100] * 6))]
    table = write_csv(tmp_path / "t.csv", rows, ["age", "s"])
    assert any("sorted by 'age'" in t for t in texts(mw.audit(table, ["age"], ["s"]), "order"))


# --- containers ---------------------------------------------------------------------------------------


def frame(n: int = 60) -> pd.DataFrame:
    return pd.DataFrame(random_rows(n), columns=[*QI, *SENSITIVE])


def test_a_clean_parquet_file(tmp_path: Path) -> None:
    pq.write_table(
        pa.Table.from_pandas(frame(), preserve_index=False).replace_schema_metadata(None),
        tmp_path / "t.parquet",
    )
    assert not texts(mw.audit(tmp_path / "t.parquet", QI, SENSITIVE), "container")


def test_our_own_parquet_file_is_clean(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "p.csv", patients())
    (tmp_path / "policy.yaml").write_text(POLICY + "output: {format: parquet}\n", encoding="utf-8")
    mw.anonymize(source, tmp_path / "policy.yaml", tmp_path / "r")
    audit = mw.audit(tmp_path / "r" / "public" / "data.parquet", ["age", "zip", "sex"], SENSITIVE)
    assert not texts(audit, "container")
    assert not texts(audit, "order")


def test_unused_dictionary_entries_and_the_index(tmp_path: Path) -> None:
    table = frame()
    table["disease"] = pd.Categorical(table["disease"], categories=["flu", "HIV", "none", "cancer", "SECRET"])
    table.index = pd.Index([*range(530, 560), *range(500, 530)])
    table.to_parquet(tmp_path / "t.parquet")
    audit = mw.audit(tmp_path / "t.parquet", QI, SENSITIVE)
    found = texts(audit, "container")
    assert any("'disease'" in t and "1 values that no row has" in t for t in found)
    assert any("__index_level_0__" in t for t in found)
    assert "SECRET" not in str(audit)


def test_a_range_of_a_larger_table(tmp_path: Path) -> None:
    frame(80).iloc[10:70].to_parquet(tmp_path / "t.parquet")
    assert any(
        "rows 10 to 70" in t for t in texts(mw.audit(tmp_path / "t.parquet", QI, SENSITIVE), "container")
    )


def test_metadata_of_their_own(tmp_path: Path) -> None:
    schema = b'{"columns": [{"name": "social_security_number"}, {"name": "age"}], "index_columns": []}'
    table = pa.Table.from_pandas(frame(), preserve_index=False)
    table = table.replace_schema_metadata({b"pandas": schema, b"source": b"/srv/clinic.csv"})
    pq.write_table(table, tmp_path / "t.parquet")
    found = texts(mw.audit(tmp_path / "t.parquet", QI, SENSITIVE), "container")
    assert any("'social_security_number'" in t for t in found)
    assert any("'source'" in t for t in found)


def test_statistics_beyond_the_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A footer as a careless writer leaves it, which kept the ends of the rows that were filtered out."""
    table = frame().assign(visits=[3, 4] * 30)
    pq.write_table(
        pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None),
        tmp_path / "t.parquet",
    )
    true = (("age", "20-29", "50-59"), ("visits", "3", "4"), ("disease", "HIV", "none"))
    kept = (("age", "10-19", "50-59"), ("visits", "3", "99"), ("disease", "HIV", "none"))
    for statistics, columns in ((true, set()), (kept, {"age", "visits"})):
        found = Container("parquet", statistics=statistics)
        monkeypatch.setattr(leaks, "examine", lambda *_, found=found: found)
        told = texts(mw.audit(tmp_path / "t.parquet", QI, SENSITIVE), "container")
        assert {c for c in ("age", "visits", "disease") if any(f"'{c}'" in t for t in told)} == columns


def test_nested_columns_do_no_harm(tmp_path: Path) -> None:
    table = pa.table({"zip": ["1", "1"], "list": [["a"], ["b", "c"]], "disease": ["x", "y"]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert not texts(mw.audit(tmp_path / "t.parquet", ["zip"], SENSITIVE), "container")


def test_bom_and_comments(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [*random_rows(30), ["# made", "by", "x"]], [*QI, *SENSITIVE])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    found = texts(mw.audit(path, QI, SENSITIVE), "container")
    assert any("byte order mark" in t for t in found)
    assert any("comment" in t for t in found)


# --- labels and the original --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "yes", "no"),
    [
        ("20-29", ["20", "29", "25.5"], ["19", "30", "x", ""]),
        ("[20, 30)", ["20", "29.9"], ["30", "19"]),
        ("(20;30]", ["30"], ["20"]),
        ("[20-30]", ["20", "30"], ["31"]),
        ("-5..-1", ["-5", "-1"], ["0"]),
        ("20 to 30", ["30"], ["31"]),
        ("<50", ["49"], ["50"]),
        ("≤50", ["50"], ["51"]),
        (">=50", ["50"], ["49"]),
        (">50", ["51"], ["50"]),
        ("50+", ["50", "99"], ["49"]),
        ("130**", ["13053"], ["14053", "1305"]),
        ("13*", ["13053", "130"], ["14"]),
        ("**053", ["13053"], ["13054"]),
        ("*", ["anything"], []),
        ("{flu, asthma}", ["flu", "asthma"], ["HIV"]),
        ("flu|asthma", ["flu", "asthma"], ["HIV"]),
        ("2024-03", ["2024-03-15", "2024-03"], ["2024-04-01"]),
        ("2024", ["2024-03-15", "2024"], ["2023-01-01", "20245"]),
        ("Married", ["Married"], ["married"]),
    ],
)
def test_labels_are_read(label: str, yes: list[str], no: list[str]) -> None:
    assert [v for v in yes if not label_reader(label)(v)] == []
    assert [v for v in no if label_reader(label)(v)] == []


def test_a_hierarchy_reads_its_own_labels() -> None:
    hierarchy = Hierarchy.of("m", ["single", "wed", "other"], [("kind", ["alone", "both", "both"])])
    table = stands_for(["both", "*", None], hierarchy.values, hierarchy)
    assert table.tolist() == [[False, False, True, True], [True] * 4, [True, False, False, False]]


def raw(n: int = 60) -> list[list[str]]:
    pick = random.Random(7)  # noqa: S311
    return [
        [f"13{i % 5}{i % 7}{i % 3}", str(20 + i % 40), pick.choice(["flu", "HIV", "none"])] for i in range(n)
    ]


def generalised(rows: list[list[str]]) -> list[list[str]]:
    return [[f"{z[:2]}***", f"{int(a) // 20 * 20}-{int(a) // 20 * 20 + 19}", d] for z, a, d in rows]


def shuffled(rows: list[list[str]]) -> list[list[str]]:
    return random.Random(2).sample(rows, len(rows))  # noqa: S311


def audited(tmp_path: Path, published: list[list[str]], **more: Any) -> Any:
    header = [*QI, *SENSITIVE]
    original = write_csv(tmp_path / "raw.csv", raw(), header)
    return mw.audit(
        write_csv(tmp_path / "t.csv", published, header), QI, SENSITIVE, original=original, **more
    )


def test_a_faithful_shuffled_table(tmp_path: Path) -> None:
    audit = audited(tmp_path, shuffled(generalised(raw())))
    assert not [t for t in texts(audit, "original") if "record linkage" not in t]
    assert not texts(audit, "order")
    linkage = next(b for b in audit.beliefs if b.attack == "linkage")
    assert linkage.worst.before == 1, "the original singles people out"
    assert linkage.measures["singled_out"]["before"]["people"] > 0


def test_the_order_of_the_original(tmp_path: Path) -> None:
    audit = audited(tmp_path, generalised(raw()))
    [found] = [t for t in texts(audit, "order") if "order of the original" in t]
    assert "100% fit the row in the same place" in found
    fewer = [row for i, row in enumerate(generalised(raw())) if i % 4]
    assert any("order of the original" in t for t in texts(audited(tmp_path, fewer), "order"))
    assert not any("order of the original" in t for t in texts(audited(tmp_path, shuffled(fewer)), "order"))


def test_changed_and_invented_values(tmp_path: Path) -> None:
    published = shuffled(generalised(raw()))
    other = [
        [z, a, "flu" if i == 0 and d != "flu" else "HIV" if i == 0 else d]
        for i, (z, a, d) in enumerate(published)
    ]
    assert any("values were changed" in t for t in texts(audited(tmp_path, other), "original"))
    more = [*published, ["13***", "80-99", "flu"]]
    audit = audited(tmp_path, more)
    assert any("'age' cannot be read" in t for t in texts(audit, "original")), "nobody is 80"
    assert any("1 people more" in t for t in texts(audit, "original"))
    assert any("published table alone" in t for t in audit.notes)
    twice = audited(tmp_path, [*published, published[0]])
    assert any("1 rows cannot be explained by the original" in t for t in texts(twice, "original"))


def test_overlapping_labels_lower_the_chance(tmp_path: Path) -> None:
    """Somebody aged 25 fits `25` and `20-39`: two classes of 1 and 3 rows, so one in four."""
    original = write_csv(
        tmp_path / "raw.csv", [["25", "a"], ["26", "b"], ["30", "c"], ["31", "d"]], ["age", "s"]
    )
    table = write_csv(
        tmp_path / "t.csv", [["20-39", "b"], ["25", "a"], ["20-39", "d"], ["20-39", "c"]], ["age", "s"]
    )
    audit = mw.audit(table, ["age"], ["s"], original=original)
    [found] = [f for f in audit.findings if "record linkage" in f.text]
    assert found.measures["highest"] == Fraction(1, 3)
    assert found.measures["average"] == (Fraction(1, 4) + 3 * Fraction(1, 3)) / 4
    assert found.measures["single"] == 0


def test_unreadable_labels_are_left_out(tmp_path: Path) -> None:
    rows = [["Europe", a, d] for _, a, d in shuffled(generalised(raw()))]
    audit = audited(tmp_path, rows)
    assert any("'zip' cannot be read" in t for t in texts(audit, "original"))


def test_a_named_method_is_attacked(tmp_path: Path) -> None:
    """With the original and the policy, the adversary knows the method, as for a release of our own."""
    source = write_csv(tmp_path / "p.csv", patients())
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("l: 2, use: gate", "l: 2"), encoding="utf-8")
    release = mw.anonymize(source, policy, tmp_path / "r")
    audit = mw.audit(tmp_path / "r" / "public" / "data.csv", policy=policy, original=source)
    here = {b.attack: b.worst.after for b in audit.beliefs}
    there = {b.attack: b.worst.after for b in release.beliefs}
    assert here == there
    assert "minimality" in here


# --- the command --------------------------------------------------------------------------------------


@pytest.fixture
def published(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "published.csv", shuffled(generalised(raw())), [*QI, *SENSITIVE])


def test_the_command(maskwright: Command, published: Path, tmp_path: Path) -> None:
    command = ("audit", published, "--qi", "zip,age", "--sensitive", "disease")
    done = maskwright(*command)
    assert done.code == 0, done.err
    assert "k-anonymity" in done.out
    assert "compared with those of the published table itself" in done.out
    above = maskwright(*command, "--max-belief", "1/100")
    assert above.code == 1
    assert "NOT AS ASKED FOR" in above.out
    assert maskwright(*command, "--require", "k-anonymity k=1000", "--json").json["ok"] is False
    assert maskwright(*command, "--require", "k-anonymity k=2").code == 0
    assert maskwright(*command, "--html", tmp_path / "a.html").code == 0
    assert "<h1>" in (tmp_path / "a.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "word"),
    [([], "--qi"), (["--qi", "zipp"], "did you mean 'zip'"), (["--qi", "zip", "--require", "k=5"], "there is no model"),
     (["--qi", "zip", "--max-belief", "2x"], "max_belief"), (["--qi", "zip", "--html", "/no/x.html"], "cannot write")],
)  # fmt: skip
def test_bad_usage(maskwright: Command, published: Path, options: list[str], word: str) -> None:
    done = maskwright("audit", published, *options)
    assert done.code == 2
    assert word in done.error
