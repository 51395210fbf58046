"""Ways to change a release: rewrites that say the same, changed tables, and changed folders."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from tests.verification.releases import QIS, Rows, people, read, tables_in, write, write_csv

Change = Callable[[Path, Random], None]


# -- the same content, written differently --------------------------------------------------------------------------


def shuffled(path: Path, rng: Random) -> None:
    names, rows = _read(path)
    rng.shuffle(rows)
    write(path, rows, names)


def columns_in_another_order(path: Path, rng: Random) -> None:
    names, rows = _read(path)
    rng.shuffle(names)
    write(path, rows, names)


def quoted(path: Path, rng: Random) -> None:
    names, rows = _read(path)
    path.unlink()
    write_csv(
        path.with_suffix(".csv"),
        rows,
        names,
        quoting=csv.QUOTE_ALL,
        lineterminator=rng.choice(["\n", "\r\n"]),
    )


def with_a_byte_order_mark(path: Path, rng: Random) -> None:
    names, rows = _read(path)
    path.unlink()
    write_csv(path.with_suffix(".csv"), rows, names, encoding="utf-8-sig")


def as_parquet(path: Path, rng: Random) -> None:
    """Other compression, other encoding, whole numbers of another type."""
    import pyarrow as pa
    from pyarrow import parquet

    names, rows = _read(path)
    columns: dict[str, Any] = {}
    for n in names:
        values = [row[n] or None for row in rows]
        if all(v is not None and v.isdigit() and str(int(v)) == v for v in values):
            same = Random(str(path.parent))  # noqa: S311 - the two tables of a release share their group column
            small = [pa.int16()] if max(int(v or 0) for v in values) < 2**15 else []
            kind = same.choice([*small, pa.int32(), pa.int64(), pa.string()])
            columns[n] = pa.array(
                [int(v) for v in values if v is not None] if kind != pa.string() else values, kind
            )
        else:
            columns[n] = pa.array(values, pa.string())
            if rng.random() < 0.5:
                columns[n] = columns[n].dictionary_encode()
    path.unlink()
    parquet.write_table(
        pa.table(columns), path.with_suffix(".parquet"), compression=rng.choice(["snappy", "zstd", "gzip", "none"]),
        use_dictionary=rng.random() < 0.5, row_group_size=rng.choice([7, 1000]), version=rng.choice(["1.0", "2.6"]),
    )  # fmt: skip


REWRITES = [shuffled, columns_in_another_order, quoted, with_a_byte_order_mark, as_parquet]


# -- another content ------------------------------------------------------------------------------------------------


def _read(path: Path) -> tuple[list[str], Rows]:
    found = read(path)
    assert found is not None
    return found


def _by(names: list[str]) -> list[str]:
    return ["group"] if "group" in names else [q for q in QIS if q in names]


def _classes(names: list[str], rows: Rows) -> list[Rows]:
    found: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        found.setdefault(tuple(row[c] for c in _by(names)), []).append(row)
    return list(found.values())


def _two(names: list[str], rows: Rows, rng: Random) -> tuple[Rows, Rows]:
    classes = _classes(names, rows)
    return tuple(rng.sample(classes, 2)) if len(classes) > 1 else (classes[0], classes[0])  # type: ignore[return-value]


def merge(names: list[str], rows: Rows, rng: Random) -> Rows:
    one, two = _two(names, rows, rng)
    label = {c: two[0][c] for c in _by(names)}
    for row in one:
        row.update(label)
    return rows


def split(names: list[str], rows: Rows, rng: Random) -> Rows:
    """Some rows of a class get a label of their own."""
    members = max(_classes(names, rows), key=len) if rng.random() < 0.5 else rng.choice(_classes(names, rows))
    column = rng.choice(_by(names))
    for row in rng.sample(members, rng.randint(1, len(members))):
        row[column] = "99" if column == "group" else "another"
    return rows


def finer(names: list[str], rows: Rows, rng: Random) -> Rows:
    """A generalised value is replaced by one that it covers."""
    row, column = rng.choice(rows), rng.choice([c for c in names if c in QIS] or _by(names))
    row[column] = str(people()[rng.randrange(60)].get(column, "1"))
    return rows


def unsuppress(names: list[str], rows: Rows, rng: Random) -> Rows:
    raw = people()[-1] if rng.random() < 0.5 else rng.choice(people())
    group = str(1 + max(int(r["group"]) for r in rows)) if "group" in names else ""
    return [*rows, {n: raw.get(n, group) for n in names}]


def swap_between_classes(names: list[str], rows: Rows, rng: Random) -> Rows:
    one, two = (rng.choice(c) for c in _two(names, rows, rng))
    for column in [c for c in names if c not in (*QIS, "group")] or _by(names):
        one[column], two[column] = two[column], one[column]
    return rows


def one_value_for_all(names: list[str], rows: Rows, rng: Random) -> Rows:
    members, secret = rng.choice(_classes(names, rows)), [c for c in names if c not in (*QIS, "group")]
    for row in members:
        row[secret[0] if secret else _by(names)[0]] = members[0][secret[0] if secret else _by(names)[0]]
    return rows


def another_value(names: list[str], rows: Rows, rng: Random) -> Rows:
    row, column = rng.choice(rows), rng.choice(names)
    row[column] = rng.choice(rows)[column]
    return rows


def drop(names: list[str], rows: Rows, rng: Random) -> Rows:
    for _ in range(rng.randint(1, 3)):
        rows.remove(rng.choice(rows))
    return rows


def duplicate(names: list[str], rows: Rows, rng: Random) -> Rows:
    return [*rows, dict(rng.choice(rows))]


def blank(names: list[str], rows: Rows, rng: Random) -> Rows:
    rng.choice(rows)[rng.choice(names)] = ""
    return rows


def trailing_blank(names: list[str], rows: Rows, rng: Random) -> Rows:
    row, column = rng.choice(rows), rng.choice(names)
    row[column] = row[column] + " " if rng.random() < 0.5 else " " + row[column]
    return rows


def other_case(names: list[str], rows: Rows, rng: Random) -> Rows:
    row, column = rng.choice(rows), rng.choice(names)
    row[column] = row[column].upper() if row[column].upper() != row[column] else row[column] + "x"
    return rows


def zeros(names: list[str], rows: Rows, rng: Random) -> Rows:
    """01 and 1, 1.0 and 1: the same number, and still another text."""
    row, column = rng.choice(rows), rng.choice(names)
    row[column] = rng.choice(["0" + row[column], row[column] + ".0", "+" + row[column]])
    return rows


def nothing_left(names: list[str], rows: Rows, rng: Random) -> Rows:
    return []


TABLES = [merge, split, finer, unsuppress, swap_between_classes, one_value_for_all, another_value, drop, duplicate,
          blank, trailing_blank, other_case, zeros, nothing_left]  # fmt: skip


def change_table(folder: Path, how: Callable[[list[str], Rows, Random], Rows], rng: Random) -> None:
    path = rng.choice(tables_in(folder))
    names, rows = _read(path)
    write(path, how(names, rows, rng), names)


def rename_column(folder: Path, rng: Random) -> None:
    path = rng.choice(tables_in(folder))
    names, rows = _read(path)
    old = rng.choice(names)
    new = rng.choice([old.upper(), old + " ", "name", old + "2"])
    write(
        path,
        [{(new if k == old else k): v for k, v in r.items()} for r in rows],
        [new if n == old else n for n in names],
    )


def drop_column(folder: Path, rng: Random) -> None:
    path = rng.choice(tables_in(folder))
    names, rows = _read(path)
    names.remove(rng.choice(names))
    write(path, rows, names)


def add_column(folder: Path, rng: Random) -> None:
    path = rng.choice(tables_in(folder))
    names, rows = _read(path)
    new = rng.choice(["name", "row", "Age"])
    write(path, [{**r, new: f"P{i}"} for i, r in enumerate(rows)], [*names, new])


COLUMNS = [rename_column, drop_column, add_column]


# -- the folder -----------------------------------------------------------------------------------------------------


def files_in(folder: Path) -> list[Path]:
    """Everything but the private manifest, which is what the rest is compared with."""
    return sorted(p for p in folder.rglob("*") if p.is_file() and p != folder / "private/manifest.json")


def flip(folder: Path, rng: Random) -> None:
    path = rng.choice(files_in(folder))
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(bytes(data))


def truncate(folder: Path, rng: Random) -> None:
    path = rng.choice(files_in(folder))
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data))])


def append(folder: Path, rng: Random) -> None:
    path = rng.choice(files_in(folder))
    path.write_bytes(path.read_bytes() + rng.choice([b" ", b"\n", b"\0", b"x"]))


def remove(folder: Path, rng: Random) -> None:
    rng.choice(files_in(folder)).unlink()


def add(folder: Path, rng: Random) -> None:
    where = rng.choice(["public/more.csv", "public/.hidden", "private/more.json", "public/sub/more.csv"])
    (folder / where).parent.mkdir(exist_ok=True)
    (folder / where).write_text("age,disease\n1,flu\n")


def exchange(folder: Path, rng: Random) -> None:
    """Two files of the release change places."""
    one, two = rng.sample([p for p in files_in(folder) if p.name != "manifest.json"], 2)
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second if first != second else second + b" ")
    two.write_bytes(first)


def link_out(folder: Path, rng: Random) -> None:
    """A file is replaced by a link to one elsewhere, with the same content for now."""
    path = rng.choice(files_in(folder))
    outside = folder.with_name(folder.name + ".outside")
    shutil.move(path, outside)
    path.symlink_to(outside)


def link_in(folder: Path, rng: Random) -> None:
    """The public part is elsewhere."""
    outside = folder.with_name(folder.name + ".public")
    shutil.move(folder / "public", outside)
    (folder / "public").symlink_to(outside, target_is_directory=True)


def policy_text(folder: Path, rng: Random) -> None:
    path = folder / "private/policy.yaml"
    path.write_text(path.read_text().replace("k: 3", "k: 1"))


FOLDERS = [flip, flip, truncate, append, remove, add, exchange, link_out, link_in, policy_text]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the single values of a JSON document are."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))
    else:
        yield path


def edit(manifest: Path, path: tuple[Any, ...]) -> None:
    """Change one value of a manifest."""
    document = json.loads(manifest.read_text())
    at = document
    for step in path[:-1]:
        at = at[step]
    old = at[path[-1]]
    at[path[-1]] = (
        (not old) if isinstance(old, bool) else old + 1 if isinstance(old, int) else f"{old or ''}x"
    )
    manifest.write_text(json.dumps(document, indent=1, ensure_ascii=False))
