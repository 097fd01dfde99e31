"""The arithmetic of charts: nothing leaves its box, parts lie on each other, and shares add up."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.reports import MAX_COUNT
from flagsvc.pages.charts import HEIGHT, ROUND, SLOT, Chart, Mark, Series, draw, round_up, shares_of, short

RECTANGLE = re.compile(r"M(\d+) ([\d.]+)h(\d+)V([\d.]+)h-(\d+)z")
NUMBERS = st.one_of(st.integers(0, MAX_COUNT), st.floats(0, 1e6))
TABLES = st.integers(1, 40).flatmap(
    lambda width: st.lists(st.lists(NUMBERS, min_size=width, max_size=width), min_size=1, max_size=6)
)


def drawn(*columns: list[float]) -> Chart | None:
    """Return the chart of some columns, the first one at the bottom."""
    return draw([Series(f"s{place}", f"v{place}", each) for place, each in enumerate(columns)], [Mark("now")])


def boxes(outline: str) -> dict[int, tuple[float, float]]:
    """Return the top and the bottom of each rectangle of an outline by its place; every character must belong to one."""
    assert not RECTANGLE.sub("", outline)
    found = {}
    for x, top, width, bottom, back in RECTANGLE.findall(outline):
        assert width == back
        assert int(x) // SLOT == (int(x) + int(width)) // SLOT, "a bar reaches into its neighbour"
        found[int(x) // SLOT] = (float(top), float(bottom))
    return found


@given(TABLES)
def test_bars_stay_in_the_box_and_on_each_other(table: list[list[float]]) -> None:
    """Every part begins where the part below it ends, within the box, and is as high as its number is to the scale."""
    chart = drawn(*table)
    if chart is None:
        assert not any(each > 0 for column in table for each in column)
        return
    top = round_up(max(sum(each) for each in zip(*table, strict=True)))
    ground = dict.fromkeys(range(len(table[0])), float(HEIGHT))
    for column, part in zip(table, chart.parts, strict=True):
        found = boxes(part.outline)
        for place, (upper, lower) in found.items():
            assert 0 <= upper < lower == ground[place]
            assert lower - upper == pytest.approx(HEIGHT * column[place] / top, abs=0.11)
            ground[place] = upper
        assert all(HEIGHT * column[place] / top < 0.11 for place in ground.keys() - found.keys())
    assert chart.width == SLOT * len(table[0])
    assert {x // SLOT for x, _ in chart.hints} == {place for place, each in enumerate(zip(*table, strict=True)) if sum(each)}


@given(NUMBERS)
def test_the_top_is_round_and_near(value: float) -> None:
    """No number is above the top, and a number from 1 on fills at least half of the box."""
    top = round_up(value)
    assert top >= max(value, 1) and (value < 1 or value >= top / 2)
    assert float(f"{top:.0e}") == pytest.approx(top) and int(f"{top:.0e}"[0]) in ROUND


@given(st.lists(NUMBERS, min_size=1, max_size=8).filter(any))
def test_shares_add_up(totals: list[float]) -> None:
    """Shares are whole percents, each within 1 of the exact share, and together 100. A small part is never `0 %`."""
    found = shares_of(totals)
    numbers = [0 if each == "< 1 %" else int(each.removesuffix(" %")) for each in found]
    assert sum(numbers) == 100
    assert all(abs(number - 100 * each / sum(totals)) < 1.0001 for number, each in zip(numbers, totals, strict=True))
    assert [each == "0 %" for each in found] == [not each for each in totals]


def test_what_a_chart_says() -> None:
    """The scale is round, the highest number exact, and each bar has its numbers. Nothing and zeros alone are no chart."""
    chart = drawn([1485, 0], [4012, 150])
    assert chart is not None
    assert (chart.scale, chart.highest) == (("6,000", "3,000", "0"), "5,497")
    assert [each.share for each in chart.parts] == ["26 %", "74 %"]
    assert chart.hints == ((0, "1,485 s0, 4,012 s1"), (SLOT, "150 s1"))
    assert drawn([], []) is None and drawn([0, 0.0], [0, 0]) is None


@pytest.mark.parametrize(
    ("value", "shown", "exact"),
    [(0.5, "0.5", "0.5"), (99_999, "99,999", "99,999"), (200_000, "200 k", "200,000"), (8e15, "8,000 T", "8,000,000,000,000,000")],
)
def test_numbers_for_people(value: float, shown: str, exact: str) -> None:
    """Long numbers of the scale are short."""
    assert (short(value), short(value, exact=True)) == (shown, exact)
