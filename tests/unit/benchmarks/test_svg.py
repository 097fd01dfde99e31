"""The plots: well-formed, all points inside, logarithmic axes if requested."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from harness import svg
from harness.svg import Axis, Line

SPACE = "{http://www.w3.org/2000/svg}"
FLAGS, COST = Axis("flags"), Axis("µs")


def drawn(lines: list[Line], x: Axis = FLAGS, y: Axis = COST) -> ElementTree.Element:
    """Return a chart, parsed."""
    return ElementTree.fromstring(svg.chart("cost & <more>", lines, x, y))


def texts(root: ElementTree.Element) -> list[str]:
    """Return all texts."""
    return [each.text or "" for each in root.iter(f"{SPACE}text")]


def places(root: ElementTree.Element) -> list[tuple[float, float]]:
    """Return the positions of the dots."""
    return [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in root.iter(f"{SPACE}circle")]


def test_names_are_escaped_and_shown() -> None:
    """Title, axes and lines show their names, with any characters."""
    found = texts(drawn([Line("a < b", [(1, 1), (10, 10)])]))
    assert {"cost & <more>", "flags", "µs", "a < b"} <= set(found)


def test_powers_of_ten_are_evenly_spread() -> None:
    """On logarithmic axes equal factors are equal distances."""
    (x1, y1), (x2, y2), (x3, y3) = places(drawn([Line("a", [(10, 1), (100, 10), (1000, 100)])]))
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.2)
    assert x1 < x2
    assert y1 > y2


def test_linear_axes_begin_at_zero() -> None:
    """On a linear axis twice the value is twice as high."""
    root = drawn([Line("a", [(1, 30), (2, 60)])], y=Axis("MB", logarithmic=False))
    (_, low), (_, high) = places(root)
    base = svg.HEIGHT - svg.BOTTOM
    assert base - high == pytest.approx(2 * (base - low), abs=0.2)
    assert "0" in texts(root)


@pytest.mark.parametrize("points", [[(5000.0, 7.3)], [(10.0, 0.02), (5000.0, 54321.0)], [(1.0, 1.0), (1.0, 1.0)]])
def test_everything_is_inside(points: list[tuple[float, float]]) -> None:
    """No dot leaves the area between the axes, for one point as for seven decades."""
    for x, y in places(drawn([Line("a", points)])):
        assert svg.LEFT <= x <= svg.WIDTH - svg.RIGHT
        assert svg.TOP <= y <= svg.HEIGHT - svg.BOTTOM


def test_dashes_and_colours_tell_lines_apart() -> None:
    """A dashed line is dashed; colours repeat when they are used up."""
    root = drawn([Line("a", [(1, 1)], 0), Line("b", [(1, 2)], len(svg.COLOURS), dashed=True)])
    first, second = root.iter(f"{SPACE}polyline")
    assert first.attrib["stroke"] == second.attrib["stroke"]
    assert "stroke-dasharray" in second.attrib
    assert "stroke-dasharray" not in first.attrib


def test_ticks_of_its_own() -> None:
    """An axis shows the ticks it is given."""
    assert {"p50", "p99"} <= set(
        texts(drawn([Line("a", [(2, 1), (100, 2)])], x=Axis("", ticks=[(2, "p50"), (100, "p99")])))
    )


def test_nothing_to_draw_is_a_chart_as_well() -> None:
    """Without points there are axes only."""
    assert places(drawn([])) == []
