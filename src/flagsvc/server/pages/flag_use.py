"""The use of a flag as a picture: requests by hour or by six hours in one environment, on and off, and its variants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from urllib.parse import urlencode

from flagsvc.pages.charts import Mark, Series, picture
from flagsvc.server.api.call import ApiCall
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources.usage import SPAN, UsageSum, hours_of_day, spans_of_week, sum_between
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import format_time

MOST_VARIANTS: Final = 4
"""The most variants of a picture; all others are one part."""
DISABLED: Final = "disabled"
"""What SDKs report as the variant of a flag that is off."""


class Window(NamedTuple):
    """A time that is shown: its `words`, what a bar is, the beginnings of its bars, and which of them have a mark.

    A mark of a time of day is made local by script; days are those of UTC.
    """

    words: str
    bar: str
    beginnings: Callable[[datetime], list[datetime]]
    every: int
    mark: str
    is_local: bool


WINDOWS: Final = {
    "": Window("last 24 hours", "Hour from", hours_of_day, 3, "%H", True),
    "week": Window("last 7 days", f"{SPAN} hours from", spans_of_week, 24 // SPAN, "%d %b", False),
}


def read_use(call: ApiCall, tx: Tx, flag: str, states: Sequence[Json]) -> Json:
    """Return the use of a flag in the environment and the time that the query names.

    Without them it is a day in the first of the flag's `states` in which it was used, or in the first of all.
    """
    span, given = (call.first_value(each) or "" for each in ("span", "environment"))
    span = span if span in WINDOWS else ""
    window, places = WINDOWS[span], [each["name"] for each in states]
    used = [each["name"] for each in states if each["lastSeenAt"]]
    place = given if given in places else next(iter(used or places), "")
    beginnings = window.beginnings(tx.now)
    sums = sum_between(tx, flag, place, beginnings)
    return {
        "environment": place,
        "span": span,
        "address": address_of(place, span),
        "words": window.words,
        "bar": window.bar,
        "isLocal": window.is_local,
        "environments": [{"name": each, "address": address_of(each, span)} for each in places],
        "spans": [{"words": each.words, "address": address_of(place, name)} for name, each in WINDOWS.items()],
        "picture": picture(series_of(sums), marks_of(window, beginnings)),
        "rows": [
            {"from": format_time(moment), "yes": each.yes, "no": each.no, "variants": each.variants}
            for moment, each in reversed(list(zip(beginnings, sums, strict=True)))
            if moment <= tx.now
        ],
    }


def address_of(place: str, span: str) -> str:
    """Return what follows the `?` in the address of the page of a flag."""
    return urlencode({name: text for name, text in (("environment", place), ("span", span)) if text})


def marks_of(window: Window, beginnings: Sequence[datetime]) -> list[Mark]:
    shown = beginnings[:: window.every]
    return [Mark(f"{each:{window.mark}}", (window.is_local and format_time(each)) or "") for each in shown]


def series_of(sums: Sequence[UsageSum]) -> list[Series]:
    """Return what a picture has from the bottom: the variants that were reported most, the rest of on, and off."""
    totals = Counter[str]()
    for each in sums:
        totals.update({name: number for name, number in each.variants.items() if name != DISABLED})
    shown = [name for name, _ in totals.most_common(MOST_VARIANTS)]
    others = totals.keys() - set(shown)
    found = [Series(name, f"v{at}", [each.variants.get(name, 0) for each in sums]) for at, name in enumerate(shown, 1)]
    if others:
        found.append(Series("other variants", "v5", [sum(each.variants.get(name, 0) for name in others) for each in sums]))
    parts = zip(*(each.values for each in found), strict=True) if found else ((0,) for _ in sums)
    rest = [max(0, each.yes - sum(part)) for each, part in zip(sums, parts, strict=True)]
    if any(rest) or not found:
        found.append(Series("on, without a variant" if found else "on", "yes", rest))
    return [*found, Series("off", "no", [each.no for each in sums])]
