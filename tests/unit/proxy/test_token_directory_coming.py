"""Tokens while an environment is replaced: one that only the coming environment may open waits, and is not refused."""

from __future__ import annotations

import pytest

from flagsvc.proxy.tokens import UnavailableError
from support.aio import asynchronous
from support.directory_scene import DirectoryScene, FakeLookup, Place, grant, known, name_of


def replaced(former: Place, coming: Place, *others: Place) -> DirectoryScene:
    """Return a directory in which an environment is to take the place of another one."""
    scene = DirectoryScene(former, *others)
    scene.coming = [coming]
    return scene


async def is_asked_to_wait(scene: DirectoryScene, token: str) -> bool:
    """Return whether a token, which opens nothing now, cannot be looked up. The token is not refused without a question then."""
    try:
        found = await scene.look_up(token)
    except UnavailableError:
        return not scene.directory.is_refused(token)
    assert found is None
    return False


@pytest.mark.parametrize(
    ("token", "own", "project", "waits"),
    [
        ("a:production.1", "*:production.new", None, True),
        ("a:production.1", "*:production.new", "a", True),
        ("a:production.1", "a:production.new", None, True),
        ("a:production.1", "[]:production.new", None, True),
        ("a:production.1", "opaque", None, True),
        ("[]:production.1", "a:production.new", None, True),
        ("opaque-caller", "*:production.new", None, True),
        ("a:production.1", "b:production.new", None, False),
        ("a:production.1", "*:production.new", "b", False),
        ("*:production.1", "a:production.new", None, False),
        ("a:test.1", "*:production.new", None, False),
    ],
)
@asynchronous
async def test_a_token_that_may_be_of_the_coming_environment(
    token: str, own: str, project: str | None, waits: bool
) -> None:
    """It is told by its text: the coming environment has another upstream, which is not asked yet."""
    former = Place("web", "*:development.old", "https://old", FakeLookup({}))
    coming = Place("web", own, "https://new", FakeLookup({}), project)
    scene = replaced(former, coming)
    assert await is_asked_to_wait(scene, token) is waits
    assert scene.directory.is_refused(token) is (not waits and scene.directory._choose(token) == [])
    assert coming.lookup is not None and coming.lookup.asked == []
    scene.coming = []
    assert not await is_asked_to_wait(scene, token), "nothing else opens it"


@asynchronous
async def test_what_the_upstream_says_counts_more() -> None:
    """Both have one upstream, which was asked: projects that the coming environment has not got are not waited for."""
    lookup = known(**{"[]_production_1": grant("production", "a", "b"), "[]_production_2": grant("production", "c")})
    former = Place("web", "x:production.old", lookup=lookup)
    scene = replaced(former, Place("web", "*:production.new", lookup=lookup))
    assert await is_asked_to_wait(scene, "[]:production.1") and not scene.log.lines
    scene.coming = [Place("web", "c:production.new", lookup=lookup)]
    assert not await is_asked_to_wait(scene, "[]:production.1")
    assert await is_asked_to_wait(scene, "[]:production.2")


@asynchronous
async def test_a_token_that_is_unknown_there_or_may_not_be_sent() -> None:
    """It is refused: by the upstream of the coming environment, as a secret of another one, or because only listed keys count."""
    lookup = FakeLookup({})
    former = Place("web", "*:development.old", lookup=lookup)
    scene = replaced(former, Place("web", "*:production.new", lookup=lookup))
    assert await is_asked_to_wait(scene, "a:production.1")
    lookup.refused.add("a:production.1")
    assert not await is_asked_to_wait(scene, "a:production.1") and scene.directory.is_refused("a:production.1")
    assert not await is_asked_to_wait(scene, "listed")
    scene.coming = [Place("web", "*:production.new")]
    assert not await is_asked_to_wait(scene, "a:production.2")


@asynchronous
async def test_what_opens_something_now() -> None:
    """It goes on, also if the coming environment may open to it. Of two tokens of a request both wait if one does."""
    lookup = known(a_production_1=grant("production", "a"))
    former = Place("web", "*:production.old", lookup=lookup)
    scene = replaced(former, Place("web", "*:test.new", lookup=lookup))
    assert name_of(await scene.look_up("a:production.1")) == "web"
    with pytest.raises(UnavailableError):
        await scene.look_up_all("a:production.1", "a:test.1")
