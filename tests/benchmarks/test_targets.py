"""A benchmark that missed a target ends with 1 and says which."""

from __future__ import annotations

import pytest

from benchmarks.targets import Targets


def test_what_is_missed_is_said_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    targets = Targets()
    assert targets.met("fast", 1.0, 2.0) == "limit 2 s: met"
    assert targets.met("free", 99.0, None) == ""
    assert targets.end() == 0
    assert targets.met("slow", 3.0, 2.0, "x") == "limit 2 x: MISSED"
    assert targets.right("wrong", False, "optimum 7") == "optimum 7: MISSED"
    assert targets.end() == 1
    assert capsys.readouterr().out == "MISSED  slow: limit 2 x\nMISSED  wrong: optimum 7\n"
