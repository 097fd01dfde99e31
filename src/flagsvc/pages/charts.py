"""Charts of bars: stacked series in a box, a scale with round numbers, and shares that add up. Pure arithmetic.

The box is as wide as the page, so no text is in it: `charts.html` puts scale and axis around it, and the same numbers in a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

from flagsvc.core.direction import isolate

HEIGHT: Final = 100
"""The height of the box, in units of its drawing."""
SLOT: Final = 10
"""The width of a bar with the gap beside it, in the same units."""
BAR: Final = 8
ROUND: Final = (1, 2, 3, 4, 5, 6, 8, 10)
"""First digits of the number at the top. The half of it is short, too."""
SHORT_FROM: Final = 100_000
UNITS: Final = ("", " k", " M", " G", " T", " P", " E")
"""Units of thousands, of millions and so on."""


class Series(NamedTuple):
    """Numbers of one kind, none below 0: one for each bar. `look` is the class of their part of a bar."""

    name: str
    look: str
    values: Sequence[float]


class Mark(NamedTuple):
    """A text below a bar. `moment` is the beginning of the bar as an API time; empty if the text tells no time of day."""

    text: str
    moment: str = ""


class Part(NamedTuple):
    """A series as it is drawn and explained: its outline, and its share of all, such as `27 %`."""

    name: str
    look: str
    outline: str
    share: str


class Chart(NamedTuple):
    """A drawing. A bar with the gap beside it is `slot` wide. `scale` has the numbers at the top, the middle and the bottom.

    `hints` are a place and a text for each bar. `marks` are as far apart from each other as from the end.
    """

    width: int
    height: int
    slot: int
    parts: tuple[Part, ...]
    scale: tuple[str, str, str]
    highest: str
    hints: tuple[tuple[int, str], ...]
    marks: tuple[Mark, ...]


def picture(series: Sequence[Series], marks: Sequence[Mark]) -> dict[str, Any]:
    """Return what a picture shows as the data of a page; `draw_picture` in its template draws it."""
    return {"series": [each._asdict() for each in series], "marks": [each._asdict() for each in marks]}


def draw_picture(data: Mapping[str, Any]) -> Chart | None:
    """Return the drawing of what `picture` returned; None if all numbers are 0."""
    return draw([Series(**each) for each in data["series"]], [Mark(**each) for each in data["marks"]])


def draw(series: Sequence[Series], marks: Sequence[Mark]) -> Chart | None:
    """Return the drawing of series of the same length, the first one at the bottom; None if all numbers are 0."""
    sums = [sum(each) for each in zip(*[each.values for each in series], strict=True)]
    highest = max(sums, default=0)
    if not highest > 0:
        return None
    top = round_up(highest)
    edges = stack([each.values for each in series], top)
    shares = shares_of([sum(each.values) for each in series])
    return Chart(
        width=SLOT * len(sums),
        height=HEIGHT,
        slot=SLOT,
        parts=tuple(
            Part(each.name, each.look, outline(*between), share)
            for each, between, share in zip(series, pairwise(edges), shares, strict=True)
        ),
        scale=(short(top), short(top / 2), "0"),
        highest=short(highest, exact=True),
        hints=tuple((place * SLOT, hint(series, place)) for place, total in enumerate(sums) if total),
        marks=tuple(marks),
    )


def round_up(value: float) -> float:
    """Return a round number that is not below `value`, and at least 1."""
    power = 1.0
    while value > 10 * power:
        power *= 10
    return next(digit * power for digit in ROUND if value <= digit * power)


def stack(columns: Sequence[Sequence[float]], top: float) -> list[list[float]]:
    """Return the heights of the edges between stacked columns, from the bottom to the top of the highest one, within the box."""
    zeros = [0.0] * len(columns[0])
    sums = accumulate(columns, lambda below, each: [a + b for a, b in zip(below, each, strict=True)], initial=zeros)
    return [[round(HEIGHT * min(each / top, 1.0), 1) for each in row] for row in sums]


def outline(lower: Sequence[float], upper: Sequence[float]) -> str:
    """Return the path of rectangles between edges."""
    return "".join(rectangles(lower, upper))


def rectangles(lower: Sequence[float], upper: Sequence[float]) -> Iterator[str]:
    for place, (low, high) in enumerate(zip(lower, upper, strict=True)):
        if high > low:
            yield f"M{place * SLOT + (SLOT - BAR) // 2} {HEIGHT - high:.1f}h{BAR}V{HEIGHT - low:.1f}h-{BAR}z"


def shares_of(totals: Sequence[float]) -> list[str]:
    """Return whole percents that add up to 100. A small part that rounds to nothing is `< 1 %`. Not all may be 0."""
    whole = sum(totals)
    exact = [100 * each / whole for each in totals]
    found = [int(each) for each in exact]
    lost = sorted(range(len(exact)), key=lambda place: found[place] - exact[place])
    for place in lost[: 100 - sum(found)]:
        found[place] += 1
    return ["< 1 %" if total and not share else f"{share} %" for total, share in zip(totals, found, strict=True)]


def short(value: float, *, exact: bool = False) -> str:
    """Return a number for people, such as `2,500`, `0.5` and `200 k`. With `exact`, no digit in front of the point is lost."""
    unit = 0
    while value >= SHORT_FROM and not exact and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:,.1f}".removesuffix(".0") + UNITS[unit]


def hint(series: Sequence[Series], place: int) -> str:
    """Return the numbers of one bar in words."""
    return ", ".join([f"{short(each.values[place], exact=True)} {isolate(each.name)}" for each in series if each.values[place]])
