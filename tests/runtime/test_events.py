"""What is said about the time that is left."""

from __future__ import annotations

import time

import pytest

from maskwright.runtime import events
from maskwright.runtime.events import Event, Forecast, Progress, in_words


def test_the_pace_comes_from_the_steps_that_are_done() -> None:
    forecast = Forecast({"reading": 1.0, "summarising": 4.0, "writing": 2.0})
    forecast.start("reading", 0.0)
    forecast.start("summarising", 3.0)  # reading took three times as long as it usually does
    seen = forecast.look(9.0)
    assert seen is not None
    assert seen.share == pytest.approx(6 / 12)
    assert seen.left == pytest.approx(6 + 6)


def test_a_query_that_is_slower_than_usual_counts_more() -> None:
    forecast = Forecast({"summarising": 4.0, "writing": 2.0})
    forecast.start("summarising", 0.0)
    seen = forecast.look(10.0, query=0.25, since=2.0)  # 8 s for a quarter: 24 s more
    assert seen is not None
    assert seen.share == pytest.approx(10 / 34)
    assert seen.left == pytest.approx(24 + 2)


def test_a_step_that_is_late_is_never_said_to_be_done() -> None:
    forecast = Forecast({"attacking": 1.0})
    forecast.start("attacking", 0.0)
    seen = forecast.look(100.0)
    assert seen is not None
    assert seen.share < 0.95
    assert seen.left is None  # ten more seconds would be a promise that nothing supports


def test_no_time_is_promised_before_anything_was_measured_here() -> None:
    forecast = Forecast({"reading": 10.0, "writing": 5.0})
    forecast.start("reading", 0.0)
    seen = forecast.look(2.0)
    assert seen is not None
    assert (seen.share, seen.left) == (pytest.approx(0.2), None)
    assert in_words(None) == ""
    forecast.start("writing", 20.0)
    assert forecast.look(21.0) == events.Outlook(pytest.approx(0.1), pytest.approx(9.0))


def test_a_share_never_goes_back_within_a_step() -> None:
    told: list[Event] = []
    progress = Progress(told.append)
    progress.step("searching")
    for share in (0.6, 0.3, 0.7):  # a method that measures by something else from here on
        progress.share(share)
    progress.step("writing")
    progress.share(0.1)
    assert [e.share for e in told if e.kind == "progress"] == [0.6, 0.6, 0.7, 0.1]


def test_nothing_is_said_when_nothing_is_known() -> None:
    forecast = Forecast({})
    forecast.start("reading", 0.0)
    assert forecast.look(5.0) is None
    assert forecast.look(5.0, query=0.01, since=0.0) is None  # too little to go by


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (3, "a few seconds left"),
        (42, "about 40 s left"),
        (58, "about 1 min left"),
        (600, "about 10 min left"),
        (3 * 3600, "about 3.0 h left"),
    ],
)
def test_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_progress_tells_it_and_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Event] = []
    progress = Progress(told.append)
    now = [100.0]
    monkeypatch.setattr(events.time, "monotonic", lambda: now[0])
    progress.expect({"summarising": 10.0, "writing": 30.0})
    progress.step("summarising")
    now[0] += 0.5
    progress.pulse()  # too early to say anything
    now[0] += 4.5
    progress.pulse(0.5, 100.0)
    now[0] += 0.25
    progress.pulse(0.1, 100.0)
    shares = [e for e in told if e.kind == "progress"]
    assert [e.share for e in shares] == [0.5, 0.5]
    assert shares[0].text == "about 40 s left"
    assert shares[0].data["left"] == 35.0
    progress.share(0.9, "nodes")  # a step that tells by itself is not interrupted
    progress.pulse(0.9, 100.0)
    assert told[-1].text == "nodes"
    assert time.monotonic() == now[0]
