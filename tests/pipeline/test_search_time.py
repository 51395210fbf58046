"""A search that its time ended says so, with how much better another release could be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from maskwright.pipeline.publish import Run
from maskwright.runtime.events import Progress


@pytest.mark.parametrize(("gap", "told"), [(0.125, 1), (0.0, 0), (None, 0)])
def test_the_gap_is_told(gap: float | None, told: int) -> None:
    this: Any = SimpleNamespace(progress=Progress())
    grouping: Any = SimpleNamespace(search={"gap": gap, "objective": "arx-loss"})
    Run.tell_gap(this, grouping)
    assert len(this.progress.notes) == told
    assert not told or "lose up to 12.5 % less (arx-loss)" in this.progress.notes[0]
