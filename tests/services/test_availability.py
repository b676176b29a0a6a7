"""Working hours on the clocks of the world, and GPUs that somebody else uses."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsyn.services import availability
from parsyn.services.availability import DAYS, foreign_use, is_open, next_opening

BERLIN = "Europe/Berlin"
GIB = 1 << 30
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri"]


def hours(days: list[str], start: str, end: str, timezone: str = "UTC") -> dict[str, Any]:
    return {"days": days, "start": start, "end": end, "timezone": timezone}


def at(text: str, timezone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(timezone)).timestamp()


NIGHTS = [hours(WEEKDAYS, "22:00", "06:00", BERLIN)]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2026-11-30T21:59", False),  # a Monday
        ("2026-11-30T22:00", True),
        ("2026-12-01T05:59", True),
        ("2026-12-01T06:00", False),
        ("2026-12-05T05:59", True),  # Saturday morning still belongs to Friday
        ("2026-12-05T22:30", False),
        ("2026-12-07T05:00", False),  # Monday morning would belong to Sunday
    ],
)
def test_hours_over_midnight_belong_to_the_day_on_which_they_begin(
    moment: str, expected: bool
) -> None:
    assert is_open(NIGHTS, at(moment, BERLIN)) is expected


def test_the_zone_is_the_machines_own() -> None:
    office = [hours(["mon"], "09:00", "17:00", "America/New_York")]
    assert is_open(office, at("2026-11-30T14:00"))
    assert not is_open(office, at("2026-11-30T13:59"))


def test_equal_times_are_a_whole_day() -> None:
    sunday = [hours(["sun"], "00:00", "00:00")]
    assert is_open(sunday, at("2026-11-29T00:00"))
    assert is_open(sunday, at("2026-11-29T23:59"))
    assert not is_open(sunday, at("2026-11-30T00:00"))


def test_the_night_on_which_the_clock_is_set_back_is_an_hour_longer() -> None:
    night = [hours(list(DAYS), "22:00", "06:00", BERLIN)]
    # 2026-10-25: at 03:00 it is 02:00 again, so 06:00 comes nine hours after 22:00.
    begin, end = at("2026-10-24T22:00", BERLIN), at("2026-10-25T06:00", BERLIN)
    assert end - begin == 9 * 3600
    assert is_open(night, begin + 8.5 * 3600)
    assert not is_open(night, end)


def test_without_hours_it_is_always_open() -> None:
    assert is_open([], 0.0)
    assert next_opening([], 0.0) is None


STRETCHES = st.builds(
    hours,
    st.lists(st.sampled_from(DAYS), min_size=1, max_size=7, unique=True),
    st.times().map(lambda time: f"{time:%H:%M}"),
    st.times().map(lambda time: f"{time:%H:%M}"),
    st.sampled_from(["UTC", BERLIN, "America/New_York", "Asia/Kolkata", "Pacific/Apia"]),
)
SECONDS = st.integers(int(1.577e9), int(1.893e9)).map(float)
"""From 2020 to 2030."""


@given(st.lists(STRETCHES, min_size=1, max_size=4), SECONDS)
def test_it_opens_when_it_says_and_within_eight_days(stretches: Any, now: float) -> None:
    opening = next_opening(stretches, now)
    assert opening is not None
    assert now < opening <= now + 8 * 86400 + 7200
    assert is_open(stretches, opening)


@given(st.lists(STRETCHES, min_size=1, max_size=4), SECONDS)
def test_while_it_is_closed_it_stays_so_until_the_next_opening(stretches: Any, now: float) -> None:
    opening = next_opening(stretches, now)
    if not is_open(stretches, now) and opening is not None:
        for part in (0.25, 0.5, 0.75, 0.999):
            assert not is_open(stretches, now + (opening - now) * part)


# --- a GPU that is in use --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("foreign", "total", "sentence"),
    [
        (None, 24 * GIB, None),
        (GIB // 2, 8 * GIB, None),
        (GIB, 8 * GIB, None),
        (2 * GIB, 24 * GIB, None),
        (2 * GIB, 8 * GIB, "Other programs use 2.0 of the 8.0 GiB of its GPU."),
        (20 * GIB, 24 * GIB, "Other programs use 20.0 of the 24.0 GiB of its GPU."),
    ],
)
def test_a_desktop_may_stay_and_whoever_works_there_goes_first(
    foreign: int | None, total: int, sentence: str | None
) -> None:
    metrics = {"vram_foreign": foreign, "vram_total": total}
    assert foreign_use(metrics) == sentence


def test_the_sentence_of_the_hours_says_when_it_comes_back() -> None:
    said = availability._closed(NIGHTS, at("2026-12-05T12:00", BERLIN))
    assert said == "It is outside of its working hours until Mon 22:00 (Europe/Berlin)."
