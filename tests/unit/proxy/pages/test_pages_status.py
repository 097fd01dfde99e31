"""The page of the status: every state in words, when, why, and what was left out."""

from __future__ import annotations

import pytest

from flagsvc.proxy.api.readiness import COLD, DRAINING, NO_WORKER, STALE
from flagsvc.proxy.configuration import State
from flagsvc.proxy.pages.status import OBJECTIONS, STATES
from support.aio import asynchronous
from support.desk_scene import DeskScene


@asynchronous
async def test_a_fresh_configuration() -> None:
    """The page and its data tell what callers get."""
    desk = DeskScene()
    await desk.clock.advance(300)
    [found] = (await desk.data("/ui/status.json"))["environments"]
    assert (found["state"], found["flags"], found["digest"], found["sinceSeconds"]) == ("fresh", 6, "digest", 300)
    assert found["revision"] == desk.only.holder.current.revision  # type: ignore[union-attr]
    assert found["leftOut"]["number"] == 1 and "features[6].name" in found["leftOut"]["parts"][0]
    assert found["odd"]["number"] == 1 and "impressionData of toggle `new-checkout`" in found["odd"]["parts"][0]
    page = await desk.text("/ui/status")
    assert "Callers get what the flag server has." in page and "5 min" in page and found["revision"] in page
    assert "features[6].name" in page and "impressionData of toggle" in page


def test_a_state_has_one_word() -> None:
    """The page calls a state as the metrics do. Only `cold` is a sentence there."""
    assert {state for state in State if STATES[state][0] != state} == {State.COLD}


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_words(state: State) -> None:
    """No state is missing, and the page of each renders."""

    @asynchronous
    async def run() -> None:
        desk = DeskScene(document=None)
        desk.only.holder.set_state(state)
        [found] = (await desk.data("/ui/status.json"))["environments"]
        assert (found["state"], found["meaning"]) == STATES[state]
        assert STATES[state][1] in await desk.text("/ui/status")

    run()


def test_every_objection_of_readiness_has_words() -> None:
    """No objection is missing."""
    assert set(OBJECTIONS) == {"", COLD, DRAINING, NO_WORKER, STALE}


@asynchronous
async def test_a_failure() -> None:
    """The error is told in words without secrets, with the number of failures and the next attempt."""
    desk = DeskScene(flagsvc_api_token="secret-token")
    notes = desk.only.poller.notes
    notes.error, notes.failed_at = "no answer to <secret-token>", desk.clock.now()
    notes.next_at = desk.clock.now() + 3
    desk.only.holder.failures = 14
    [found] = (await desk.data("/ui/status.json"))["environments"]
    assert (found["error"], found["failures"], found["nextInSeconds"]) == ("no answer to <***>", 14, 3)
    page = await desk.text("/ui/status")
    assert "no answer to &lt;***&gt;" in page and "14 times in a row" in page and "in 3 s" in page


@asynchronous
async def test_several_environments() -> None:
    """Each has a block of its own."""
    desk = DeskScene(environments={"one": {"client_keys": "a"}, "two": {"client_keys": "b"}})
    found = (await desk.data("/ui/status.json"))["environments"]
    assert [each["name"] for each in found] == ["one", "two"]
    assert "<bdi>two</bdi>" in await desk.text("/ui/status")


@asynchronous
async def test_the_process_drains() -> None:
    """Readiness says why callers should go elsewhere."""
    desk = DeskScene()
    assert (await desk.data("/ui/status.json"))["process"]["ready"] is True
    desk.runtime.generations.drain()
    process = (await desk.data("/ui/status.json"))["process"]
    assert (process["ready"], process["readiness"]) == (False, "the process is about to end")
