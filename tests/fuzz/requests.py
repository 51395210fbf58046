"""Requests to the workbench: what its pages send to every address, and what nobody should send."""

from __future__ import annotations

import json
import random
import re
from typing import Any
from urllib.parse import quote

from maskwright.workbench.security import UPLOADS
from tests.fuzz.mangle import NUMBERS, TEXTS, spoil, value
from tests.fuzz.tables import csv_bytes
from tests.patients import HEADER, POLICY

P = "/projects/{project_id}"
DAY = {
    "recipient": "a university",
    "purpose": "research",
    "signed_off_by": "A. B.",
    "given_out": "2026-01-31",
}
# What a page would send to each address that takes a body; a test demands one for every address.
BODIES: dict[tuple[str, str], list[Any]] = {
    ("POST", "/projects"): [{"path": "patients.csv"}, {"path": "patients.csv", "name": "mine"}, {"path": "@path"}],
    ("POST", "/uploads"): [None],
    ("POST", P + "/profile"): [{}, {"delimiter": ",", "encoding": "utf-8", "header": True, "preset": "none"}],
    ("PUT", P + "/policy"): [{"text": POLICY}],
    ("PUT", P + "/roles"): [
        {"columns": {"age": "quasi-identifier", "zip": "drop", "disease": "sensitive"}},
        {"columns": {"sex": "quasi-identifier", "name": "identifier"}, "missing": ["?"], "rows": "drop",
         "unit": "name"},
    ],
    ("POST", P + "/columns/{number}/preview"): [
        {"spec": {"intervals": ["5", "10"]}}, {"spec": "suppress"}, {"spec": {"mask": "right", "by": ["1", "3"]}},
        {"tree": "north\n  a\n  b\nc"}, {"csv": "flu;cold\ngout;warm\n"}, {"groups": "{x: [flu, gout]}"},
        {"spec": {"file": "hierarchies/zip.csv"}}, {"spec": {"file": "@path"}}, {"spec": {"dates": ["year"]}},
        {"spec": {"tree": {"x": {"y": ["flu"]}}}}, {"tree": "@deep"},
    ],
    ("PUT", P + "/requirements"): [
        {"require": [{"model": "k-anonymity", "k": "3"}]},
        {"require": [{"model": "t-closeness", "t": "0.3", "attribute": "disease"}, {"model": "belief", "max": "1/2"}]},
    ],
    ("PUT", P + "/method"): [
        {"method": {"name": "mondrian", "cut": "balanced"}, "recoding": "generalise"},
        {"method": {"name": "anatomy", "l": "2"}, "recoding": {"name": "bucketize"}},
    ],
    ("PUT", P + "/levels"): [{"levels": None}, {"levels": {"age": "5", "zip": "zip", "sex": "*"}}],
    ("POST", P + "/runs"): [
        {"kind": "release"}, {"kind": "space"}, {"kind": "compare", "methods": [{"name": "mondrian"}]},
        {"kind": "attack", "release": "@release", "adversary": "insider", "facts": 2},
    ],
    ("POST", P + "/runs/{job_id}/choose"): [{"number": 1}, {"number": 2}],
    ("POST", P + "/releases/{job_id}/register"): [DAY],
    ("POST", "/register/attack"): [{"entries": ["@entry", "@entry"]}],
    ("POST", "/register"): [{**DAY, "path": "release"}, {**DAY, "path": "@path"}],
    ("POST", P + "/rows"): [
        {}, {"having": [{"column": "age", "text": "3"}], "order": "zip", "descending": True, "first": 2},
    ],
    ("POST", P + "/releases/{job_id}/classes"): [{}, {"having": {"age": "3"}, "order": "age", "first": 1}],
    ("POST", P + "/releases/{job_id}/crossed"): [
        {"columns": ["age", "disease"]}, {"table": 1, "columns": ["zip", "x"]},
    ],
    ("POST", P + "/releases/{job_id}/members"): [{"number": 0}, {"table": 1, "number": -1}],
}  # fmt: skip
BODIES["PUT", P + "/columns/{number}/hierarchy"] = [
    {**body, "weight": "2"} for body in BODIES["POST", P + "/columns/{number}/preview"]
]
NO_BODY = {
    ("POST", P + "/columns/{number}/profile"),
    ("POST", P + "/runs/{job_id}/cancel"),
    ("POST", "/runs/{job_id}/cancel"),
    ("DELETE", P),
    ("DELETE", "/session"),
}
SHOWN = ["/projects", P, P + "/policy", P + "/policy.zip", P + "/runs", P + "/runs/{job_id}",
         P + "/runs/{job_id}/result", P + "/releases/{job_id}/public.zip",
         P + "/project.maskwright", "/register", "/runs/{job_id}"]  # fmt: skip
OUTSIDE = [
    "../outside/secret.csv", "@tables/../outside/secret.csv", "@outside/secret.csv", "link.csv",
    "sub/../../outside/secret.csv", "/etc/passwd", "/proc/self/environ", "/dev/zero", "/dev/stdin", "~/x.csv",
    "~nobody/x.csv", "patients.csv/..", ".", "..", "", "\0", "patients.csv\0", "x" * 5000, "a/" * 3000, "é" * 200,
    "\ud800.csv", "project.json", "policy.yaml", "//patients.csv", "file:///etc/passwd", "http://127.0.0.1/x.csv",
    "s3://x/y.csv", "patients.csv?x", "*.csv", "[p]atients.csv",
]  # fmt: skip
NAMES = [
    "a.csv", "../../a.csv", "..%2f..%2fa.csv", "%00.csv", "a%00b.csv", "%ff%fe.csv", ".htaccess", "", ".", "..", "/",
    "a/b/c", "%F0%9F%8F%B3" * 60 + ".csv", "x" * 4000, "a.parquet", "a.xlsx", "a.sav", "a.csv.gz", "a.tsv", "CON.csv",
    "-rf.csv", "%0d%0aSet-Cookie:x.csv", "<script>.csv", "a%20b.csv", "%E2%80%AE.csv", "a.csv/", "project.json",
    "%ED%A0%80.csv", "~.csv",
]  # fmt: skip
STRANGE = ["host", "origin", "cookie", "authorization", "content-length", "sec-fetch-site", "accept", "range",
           "transfer-encoding", "if-none-match", "x-csrf-token"]  # fmt: skip
ODD = [
    None,
    True,
    0,
    -1,
    2**63,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    -0.0,
    [],
    {},
    "",
    "\ud800",
    [[]],
    {"a": {"b": []}},
]
PAGES = [
    "",
    "/table",
    "/columns",
    "/columns/1",
    "/columns/4",
    "/requirements",
    "/method",
    "/run",
    "/explore",
    "/policy",
]
Request = dict[str, Any]


def request(rng: random.Random) -> Request:
    """One request, most often with something wrong; `@project` and the like are filled in by who sends it."""
    method, path = rng.choice(addresses())
    headers: dict[str, str] = {}
    body = b""
    if (method, path) in BODIES:
        body = body_for(rng, BODIES[method, path])
        headers["content-type"] = "application/json" if rng.random() < 0.95 else rng.choice(TEXTS)
    prefix = "" if path.startswith(("/p/", "/register@", "/@")) else "/api"
    if path == UPLOADS.removeprefix("/api"):
        body = csv_bytes(rng) if rng.random() < 0.7 else rng.randbytes(rng.choice((0, 5, 3000, 100_001)))
        headers["x-file-name"] = rng.choice(NAMES) if rng.random() < 0.8 else quote(value(rng), safe="")
    if rng.random() < 0.2:
        headers["if-match"] = rng.choice(["@revision", value(rng)])
    if rng.random() < 0.05:
        name = rng.choice(STRANGE)
        headers[name] = rng.choice([value(rng), "9" * 5000, "maskwright_8765=" + value(rng)])
    if rng.random() < 0.03:
        method = rng.choice(["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "X" * 300])
    return {
        "method": method, "path": prefix + address(rng, path.replace("@", "")), "headers": headers, "body": body,
        "executed": rng.random() < 0.05, "looks": rng.sample(PAGES, 2),
    }  # fmt: skip


def addresses() -> list[tuple[str, str]]:
    """Those that change something more often than the others; an @ marks pages, which are not below /api."""
    pages = [f"/p/{{project_id}}{page}" for page in (*PAGES, "/releases/{job_id}", "/columns/{number}")]
    return [
        *BODIES,
        *BODIES,
        *BODIES,
        *NO_BODY,
        *(("GET", path) for path in (*SHOWN, *pages, "/register@", "/@")),
    ]


def address(rng: random.Random, path: str) -> str:
    """A path with its places filled: most often rightly."""

    def place(match: re.Match[str]) -> str:
        name = match[1]
        if name == "number":
            return rng.choice([*"0123451414123412", "-1", "6", "9" * 30, "1e3", "%00", "9" * 5000])
        if rng.random() < 0.85:
            return {"project_id": rng.choice(["@project"] * 8 + ["@other"]), "job_id": "@release"}[name]
        return quote(
            rng.choice([*OUTSIDE[:6], "0" * 12, value(rng)]), safe=rng.choice(["", "/"]), errors="replace"
        )

    filled = re.sub(r"\{(\w+)\}", place, path)
    if rng.random() < 0.1:
        filled += "?" + rng.choice(["since=", "run=", "token=", "x="]) + quote(value(rng), safe="")
    return filled


def body_for(rng: random.Random, usual: list[Any]) -> bytes:
    found = json.loads(json.dumps(rng.choice(usual)))
    found = with_places(rng, found)
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2))):
        found = changed(rng, found)
    data = json.dumps(found, ensure_ascii=rng.random() < 0.7).encode("utf-8", "surrogatepass")
    chance = rng.random()
    if chance < 0.1:
        return spoil(rng, data)
    if chance < 0.13:
        return rng.choice([b"[" * 100_000, b'{"a":' * 5_000, b"", b"null", b"1", b'"x"', b"[]", b"\xff\xfe{\x00}\x00",
                           b"\xef\xbb\xbf{}", b'{"path": "a", "path": "b"}', b"9" * 10_000, b"-", b"NaN"])  # fmt: skip
    return data


def with_places(rng: random.Random, node: Any) -> Any:
    """`@path`, `@deep` replaced by what they stand for."""
    if isinstance(node, dict):
        return {k: with_places(rng, v) for k, v in node.items()}
    if node == "@path":
        return rng.choice(OUTSIDE)
    return "\n".join(" " * i + "x" for i in range(rng.choice((3, 60, 1300)))) if node == "@deep" else node


def changed(rng: random.Random, node: Any, depth: int = 0) -> Any:
    """The same with something replaced, added or left out, at any depth."""
    if not isinstance(node, (dict, list)) or not node or rng.random() < 0.1 * (depth > 0):
        return odd(rng)
    copy = type(node)(node)
    key = rng.choice(list(copy)) if isinstance(copy, dict) else rng.randrange(len(copy))
    way = rng.random()
    if way < 0.15:
        del copy[key]
    elif way < 0.3 and isinstance(copy, dict):
        copy[rng.choice([value(rng), "attribute", "on", "use", "file", *HEADER])] = odd(rng)
    else:
        copy[key] = changed(rng, copy[key], depth + 1)
    return copy


def odd(rng: random.Random) -> Any:
    chance = rng.random()
    if chance < 0.3:
        return rng.choice(ODD)
    if chance < 0.4:
        return rng.choice(OUTSIDE)
    if chance < 0.5:
        return [value(rng) for _ in range(rng.choice((1, 3, 500)))]
    if chance < 0.6:
        return {value(rng): value(rng)}
    return rng.choice(NUMBERS) if chance < 0.8 else value(rng)
