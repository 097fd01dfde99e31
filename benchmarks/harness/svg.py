"""Line charts as SVG text: axes that are linear or logarithmic, lines with dots, a legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 76, 214, 44, 56
COLOURS = ("#1f5fbf", "#d9541e", "#2e8b57", "#8a8a8a", "#8e44ad", "#b8860b", "#17a2b8", "#c2185b")
FONT = 'font-family="system-ui, sans-serif"'


@dataclass(frozen=True)
class Line:
    """One line: its name, its points, which of the colours, and whether it is dashed."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: int = 0
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """An axis: its title, whether it is logarithmic, and ticks of its own as (place, label)."""

    title: str
    logarithmic: bool = True
    ticks: Sequence[tuple[float, str]] = ()


def chart(title: str, lines: Sequence[Line], x: Axis, y: Axis) -> str:
    """Return an SVG document; lines without points and an empty chart are allowed."""
    xs, ys = ([point[at] for line in lines for point in line.points] for at in (0, 1))
    across, x_ticks = scale(x, xs, LEFT, WIDTH - RIGHT)
    up, y_ticks = scale(y, ys, HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text(LEFT, 24, title, size=15, anchor="start", weight="600"),
        *(vertical(across(at), label) for at, label in x_ticks),
        *(horizontal(up(at), label) for at, label in y_ticks),
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x.title),
        text(0, 0, y.title, turn=f"translate(18 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)"),
        *(drawn(line, across, up) for line in lines),
        *(legend(line, TOP + 8 + 20 * at) for at, line in enumerate(lines)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


Place = Callable[[float], float]
Ticks = Sequence[tuple[float, str]]


def scale(axis: Axis, values: Sequence[float], start: float, end: float) -> tuple[Place, Ticks]:
    """Return where a value is drawn between two coordinates, and the ticks."""
    ticks = axis.ticks or (decades(values) if axis.logarithmic else steps(values))
    low, high = (edge([at for at, _ in ticks] + list(values)) for edge in (min, max))
    bend: Place = math.log10 if axis.logarithmic else float
    span = (bend(high) - bend(low)) or 1.0

    def place(value: float) -> float:
        return start + (end - start) * (bend(value) - bend(low)) / span

    return place, ticks


def decades(values: Sequence[float]) -> Ticks:
    """Return ticks at 1, 2 and 5 times the powers of ten around the values, at the powers alone where those are many."""
    low, high = (min(values), max(values)) if values else (1.0, 10.0)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    between = (1, 2, 5) if last - first <= 3 else (1,)
    found = [factor * 10.0**power for power in range(first, last + 1) for factor in between]
    below = max((at for at in found if at <= low), default=found[0])
    above = min((at for at in found if at >= high), default=found[-1])
    return [(at, number(at)) for at in found if below <= at <= above]


def steps(values: Sequence[float], wanted: int = 6) -> Ticks:
    """Return round ticks from zero to the largest value."""
    high = max(values, default=1.0) or 1.0
    raw = high / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    return [(at * step, number(at * step)) for at in range(math.ceil(high / step) + 1)]


def number(value: float) -> str:
    """Return a short label."""
    return f"{value:,.0f}" if value >= 1 or value == 0 else f"{value:g}"


def text(x: float, y: float, content: str, size: int = 12, anchor: str = "middle", weight: str = "400", turn: str = "") -> str:
    """Return a text."""
    turned = f' transform="{turn}"' if turn else ""
    look = f'{FONT} font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" fill="#222222"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}{turned}>{escape(content)}</text>'


def vertical(x: float, label: str) -> str:
    """Return a line of the grid with its label below."""
    return grid(x, TOP, x, HEIGHT - BOTTOM) + text(x, HEIGHT - BOTTOM + 18, label)


def horizontal(y: float, label: str) -> str:
    """Return a line of the grid with its label on the left."""
    return grid(LEFT, y, WIDTH - RIGHT, y) + text(LEFT - 8, y + 4, label, anchor="end")


def grid(x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a thin line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'


def stroke(line: Line) -> str:
    """Return how a line is drawn."""
    dashes = ' stroke-dasharray="6 4"' if line.dashed else ""
    return f'stroke="{COLOURS[line.colour % len(COLOURS)]}" stroke-width="2" fill="none"{dashes}'


def drawn(line: Line, across: Place, up: Place) -> str:
    """Return a line with a dot at each point."""
    places = [(across(x), up(y)) for x, y in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[line.colour % len(COLOURS)]}"/>' for x, y in places)
    return f'<polyline points="{path}" {stroke(line)}/>{dots}'


def legend(line: Line, y: float) -> str:
    """Return a line's entry in the legend."""
    x = WIDTH - RIGHT + 14
    return f'<line x1="{x}" y1="{y}" x2="{x + 26}" y2="{y}" {stroke(line)}/>' + text(x + 33, y + 4, line.name, anchor="start")
