"""What the picture of a flag's use is made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.server.pages.flag_use import MOST_VARIANTS, series_of
from flagsvc.server.store.resources.usage import UsageSum

NAMES = st.sampled_from([*"abcdefg", "disabled"])


@st.composite
def sums(draw: st.DrawFn) -> UsageSum:
    """Draw counts as SDKs report them: each request for a variant also counts as on."""
    variants = draw(st.dictionaries(NAMES, st.integers(1, 1000), max_size=8))
    given_out = sum(number for name, number in variants.items() if name != "disabled")
    return UsageSum(given_out + draw(st.integers(0, 9)), draw(st.integers(0, 1000)), variants)


@given(st.lists(sums(), min_size=1, max_size=24))
def test_every_request_is_in_one_part(found: list[UsageSum]) -> None:
    """The parts of each bar add up to its requests, off is the last one, and few variants have a part of their own."""
    series = series_of(found)
    assert [sum(column) for column in zip(*(each.values for each in series), strict=True)] == [each.yes + each.no for each in found]
    assert list(series[-1].values) == [each.no for each in found]
    assert len(series) <= MOST_VARIANTS + 3 and "disabled" not in {each.name for each in series}
    assert len({each.look for each in series}) == len(series)


def test_odd_counts() -> None:
    """More variants than requests, as an odd client reports them, take nothing away from the other parts."""
    assert [(each.name, list(each.values)) for each in series_of([UsageSum(1, 2, {"a": 5})])] == [("a", [5]), ("off", [2])]
    assert [each.name for each in series_of([UsageSum(), UsageSum()])] == ["on", "off"]
