"""The pages of the flags: how each comes out in words, what hostile names do, and how often it was asked for."""

from __future__ import annotations

import gc
import weakref
from urllib.parse import quote

import pytest

from flagsvc.pages.templates import segment
from flagsvc.proxy.pages import unfolding
from flagsvc.proxy.pages.desk import PagesContract
from flagsvc.proxy.pages.flags import PAGE_SIZE
from flagsvc.reasons.unfolded import Unfolded
from support.aio import until
from support.desk_scene import HOSTILE, DeskScene, serve
from unit.proxy.pages.test_pages_status import features

NAMES = ["<script>alert(1)</script>", "a/b c?d.json", "child", "everyone", "new-checkout", "off"]


async def test_the_list_in_words() -> None:
    """Each flag is told as a sentence, with its variants and what it needs; a malformed one is not served."""
    desk = DeskScene()
    found = await desk.data("/ui/flags.json")
    flags = {each["name"]: each for each in found["flags"]}
    assert list(flags) == NAMES and found["total"] == 6
    assert flags["everyone"]["outcome"] is True and flags["off"]["outcome"] is False
    assert flags["new-checkout"]["outcome"] is None
    assert flags["new-checkout"]["strategies"][0]["words"] == (
        "25 % by userId, group new-checkout and plan is team and in segment beta: region is eu"
    )
    assert flags["new-checkout"]["strategies"][0]["share"] == 25
    assert flags["new-checkout"]["variants"] == "blue 50 %, green 50 %, by userId"
    assert flags["child"]["needs"] == [{"feature": "new-checkout", "words": "toggle new-checkout is on"}]
    page = await desk.text("/ui/flags")
    assert "25 % by userId, group new-checkout" in page and "only if toggle new-checkout is on" in page


async def test_no_name_becomes_markup() -> None:
    """Names, descriptions, values, searches and contexts are escaped on every page."""
    desk = DeskScene()
    for path in ("/ui/flags", f"/ui/flags?q={quote(HOSTILE)}", f"/ui/flags/{segment(HOSTILE)}", f"/ui/try?flag={quote(HOSTILE)}"):
        page = await desk.text(path)
        assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    assert "buy &lt;b&gt;more&lt;/b&gt;" in await desk.text("/ui/flags/new-checkout")
    form = {"field.userId": HOSTILE, "name": HOSTILE, "value": '"><b>', "flag": HOSTILE}
    page = await desk.text("/ui/try", method="POST", form=form)
    assert "<script>alert" not in page and '"><b>' not in page and "is on" in page


@pytest.mark.parametrize("name", NAMES)
async def test_every_name_has_a_page(name: str) -> None:
    """The list links to it, and its data is at the same address with `.json`."""
    desk = DeskScene()
    assert f'href="/ui/flags/{segment(name)}"' in await desk.text("/ui/flags")
    await desk.text(f"/ui/flags/{segment(name)}")
    assert (await desk.data(f"/ui/flags/{segment(name)}.json"))["flag"]["name"] == name


async def test_strange_names() -> None:
    """Half a surrogate pair, a mark for right-to-left text and 500 characters do no harm."""
    names = ["half \ud800", "\u202eright", "n" * 500]
    desk = DeskScene(document=features(*names))
    assert sorted(each["name"] for each in (await desk.data("/ui/flags.json"))["flags"]) == sorted(names)
    for name in names:
        assert (await desk.ask(f"/ui/flags/{segment(name)}")).status == 200
        assert (await desk.data("/ui/try.json", method="POST", form={"flag": "half"}))["result"]["fitting"] == 1


async def test_search_and_pages() -> None:
    """The search ignores case; the address has the search and the number of the page."""
    desk = DeskScene(document=features(*(f"flag-{at:04}" for at in range(2 * PAGE_SIZE + 1))))
    first = await desk.data("/ui/flags.json")
    assert (len(first["flags"]), first["pages"]) == (PAGE_SIZE, 3)
    last = await desk.data("/ui/flags.json?page=3")
    assert [each["name"] for each in last["flags"]] == ["flag-0100"]
    found = await desk.data("/ui/flags.json?q=FLAG-009")
    assert found["total"] == 10 and (await desk.data("/ui/flags.json?page=x&q=none"))["flags"] == []
    assert 'href="/ui/flags?q=flag&amp;page=2"' in await desk.text("/ui/flags?q=flag")
    assert "No flag fits" in await desk.text("/ui/flags?q=none")


async def test_how_often_flags_were_asked_for() -> None:
    """The counts go on over a post to the upstream, and counts that come back are not counted twice."""
    desk = DeskScene()
    counters = desk.only.counters
    counters.count_all(["off", "everyone", "everyone"], [False, True, True])
    drained = counters.drain()
    counters.count("everyone", True)
    asked = {each["name"]: each["asked"] for each in (await desk.data("/ui/flags.json"))["flags"]}
    assert (asked["everyone"], asked["off"], asked["child"]) == ({"yes": 3, "no": 0}, {"yes": 0, "no": 1}, {"yes": 0, "no": 0})
    assert drained is not None
    counters.take_back(drained)
    assert (await desk.data("/ui/flags/everyone.json"))["flag"]["asked"] == {"yes": 3, "no": 0}
    assert "on 3 · off 0" in await desk.text("/ui/flags/everyone")


async def test_a_new_configuration_is_shown() -> None:
    """What is kept belongs to one snapshot."""
    desk = DeskScene()
    before = await desk.data("/ui/flags.json")
    serve(desk.only, features("flag-0000"))
    after = await desk.data("/ui/flags.json")
    assert before["revision"] != after["revision"] and [each["name"] for each in after["flags"]] == ["flag-0000"]


async def test_what_is_kept_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A while after the last use, nothing of the unfolded document is left, and the next use makes it again."""
    monkeypatch.setattr(unfolding, "KEEP_S", 0.01)
    made: list[weakref.ref[Unfolded]] = []
    original = unfolding.unfold

    async def noted(*given: object) -> unfolding.Kept:
        kept = await original(*given)  # type: ignore[arg-type]
        made.append(weakref.ref(kept.unfolded))
        return kept

    monkeypatch.setattr(unfolding, "unfold", noted)
    desk = DeskScene()
    await desk.text("/ui/flags")
    await until(lambda: gc.collect() >= 0 and made[0]() is None)
    await desk.text("/ui/flags")
    assert len(made) == 2 and isinstance(desk.desk, PagesContract)
    assert (await desk.ask("/metrics")).status == 200 and desk.only.holder.current is not None
    assert len(desk.only.holder.current.names) == 6, "the served snapshot is whole"


async def test_without_a_configuration() -> None:
    """The pages say that there is none, as callers are told; an unknown flag and environment are a 404."""
    cold = DeskScene(document=None)
    for path in ("/ui/flags", "/ui/flags/off.json", "/ui/try"):
        assert (await cold.ask(path)).status == 503
    desk = DeskScene()
    for path in ("/ui/flags/none", "/ui/flags/none.json", "/ui/flags?environment=none", "/ui/flags/broken"):
        assert (await desk.ask(path)).status == 404


async def test_several_environments() -> None:
    """The address names the environment, and the pages of one lead to its own."""
    desk = DeskScene(environments={"one": {"client_keys": "a"}, "two": {"client_keys": "b", "name_prefix": "new"}})
    assert (await desk.data("/ui/flags.json"))["environment"] == "one"
    found = await desk.data("/ui/flags.json?environment=two")
    assert found["environments"] == ["one", "two"] and [each["name"] for each in found["flags"]] == ["new-checkout"]
    assert "/ui/flags/new-checkout?environment=two" in await desk.text("/ui/flags?environment=two")
    assert "/ui/try?flag=new-checkout&amp;environment=two" in await desk.text("/ui/flags/new-checkout?environment=two")
