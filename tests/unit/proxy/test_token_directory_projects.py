"""Environments that divide the projects of one upstream: which of them a token opens, and what operators are told.

Tokens while an environment is replaced: one that only the coming environment may open waits, and is not refused.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.proxy.generations.admission import REMEDY
from flagsvc.proxy.tokens import TokenScope, UnavailableError
from support.aio import asynchronous
from unit.proxy.directory_scene import DirectoryScene, FakeLookup, Place, grant, known, name_of

UP = "*:production.up"
SEVERAL = "[]:production.up"
ONE, OTHER, BOTH, EVERY = "a:production.1", "b:production.1", "[]:production.1", "*:production.1"
GRANTS = {
    ONE: grant("production", "a"),
    OTHER: grant("production", "b"),
    BOTH: grant("production", "a", "b"),
    EVERY: grant("production"),
    SEVERAL: grant("production", "a", "b", server=True),
}


def place(name: str, token: str = UP, project: str | None = None) -> Place:
    """Return an environment of an upstream that knows `GRANTS`."""
    return Place(name, token, lookup=FakeLookup(GRANTS), project=project)


async def test_one_without_a_configuration() -> None:
    """It takes no token away from an environment that works. What it alone has opens it all the same, and gets 503 there."""
    narrow, wide = place("x", UP, "a"), place("y", UP)
    scene = DirectoryScene(narrow, wide)
    for is_ready, expected in ((False, "y"), (True, "x")):
        narrow.is_ready = is_ready
        assert name_of(await scene.look_up(ONE)) == expected
    narrow.is_ready = wide.is_ready = False
    assert name_of(await scene.look_up(ONE)) == "x", "none is ready"
    narrow.is_ready = True
    assert name_of(await scene.look_up(BOTH)) == "y"


async def test_operators_are_told_what_to_do() -> None:
    """One line in ten minutes names projects and environments, and the remedy, without the token."""
    scene = DirectoryScene(place("y", UP, "b"), place("x", UP, "a"), place("z", "*:development.up"))
    for token in (BOTH, EVERY, BOTH):
        assert await scene.look_up(token) is None
    [line] = scene.log.lines
    assert line.level == "warn" and line.fields == {
        "token_environment": "production",
        "token_projects": "a, b",
        "environments": "x, y",
        "remedy": REMEDY,
    }
    assert BOTH not in str(line)
    await scene.clock.advance(600)
    await scene.look_up(EVERY)
    assert [each.fields["token_projects"] for each in scene.log.lines] == ["a, b", "*"]


async def test_an_environment_that_is_not_served() -> None:
    """Then there is nothing to set, and the line says so."""
    scene = DirectoryScene(Place("", UP, lookup=FakeLookup({"legacy": grant("development", "a")})))
    assert await scene.look_up("legacy") is None
    [line] = scene.log.lines
    assert line.fields == {"token_environment": "development", "token_projects": "a"}
    assert "does not serve" in scene.log.at("warn")[0]


async def test_an_upstream_that_does_not_tell_what_its_own_token_opens() -> None:
    """It takes nothing away from environments that are known; what it alone may have is not refused for ever."""
    unknown = Place("unknown", SEVERAL, lookup=FakeLookup({**GRANTS, SEVERAL: grant("production", server=True)}))
    unknown.lookup = FakeLookup({each: told for each, told in GRANTS.items() if each != SEVERAL})
    scene = DirectoryScene(place("x", UP, "a"), unknown, place("z", "*:development.up"))
    found = await scene.look_up(ONE)
    assert name_of(found) == "x"
    for token in (OTHER, BOTH):
        with pytest.raises(UnavailableError):
            await scene.look_up(token)
    unknown.lookup = FakeLookup(GRANTS)
    found = await scene.look_up(BOTH)
    assert name_of(found) == "unknown"
    assert not scene.log.lines


async def test_one_server_with_two_addresses() -> None:
    """If the first address that knows a token has no environment for it, the second counts; if that is away, none is refused."""
    one, two = FakeLookup(GRANTS), FakeLookup(GRANTS)
    scene = DirectoryScene(Place("x", UP, "https://1", one, "a"), Place("y", UP, "https://2", two, "b"))
    found = await scene.look_up(OTHER)
    assert name_of(found) == "y" and not scene.log.lines
    two.fault = UnavailableError(2.0)
    with pytest.raises(UnavailableError):
        await scene.look_up(OTHER)


PROJECTS = st.frozensets(st.sampled_from("abc"), min_size=1)
OWN = st.none() | PROJECTS


def own_token(number: int, projects: frozenset[str] | None) -> str:
    """Return an upstream's token of these projects; None for all."""
    named = "*" if projects is None else "[]" if len(projects) > 1 else min(projects)
    return f"{named}:production.up-{number}"


@given(st.lists(st.tuples(OWN, st.none() | st.sampled_from("abc")), min_size=1, max_size=4), OWN)
@asynchronous
async def test_no_flags_are_missing(
    given_places: list[tuple[frozenset[str] | None, str | None]], projects: frozenset[str] | None
) -> None:
    """With any tables, what a token opens has all of its projects, nothing narrower has them, in any order."""
    token = own_token(99, projects)
    told = {token: grant("production", *(projects or ()))}
    told |= {own_token(at, own): grant("production", *(own or ()), server=True) for at, (own, _) in enumerate(given_places)}
    places = [
        Place(str(at), own_token(at, own), lookup=FakeLookup(told), project=project)
        for at, (own, project) in enumerate(given_places)
    ]
    scopes = {str(at): TokenScope("production", own).limited_to(only) for at, (own, only) in enumerate(given_places)}
    covering = {name: scope for name, scope in scopes.items() if scope.covers(TokenScope("production", projects))}
    least = min((scope.breadth for scope in covering.values()), default=None)
    expected = min((name for name, scope in covering.items() if scope.breadth == least), default=None)
    for order in (places, places[::-1]):
        found = await DirectoryScene(*order).look_up(token)
        assert name_of(found) == expected
        assert found is None or found.is_whole is (scopes[str(name_of(found))].projects == projects)


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
async def test_a_token_that_may_be_of_the_coming_environment(token: str, own: str, project: str | None, waits: bool) -> None:
    """It is told by its text: the coming environment has another upstream, which is not asked yet."""
    former = Place("web", "*:development.old", "https://old", FakeLookup({}))
    coming = Place("web", own, "https://new", FakeLookup({}), project)
    scene = replaced(former, coming)
    assert await is_asked_to_wait(scene, token) is waits
    assert scene.directory.is_refused(token) is (not waits and scene.directory._choose(token) == [])
    assert coming.lookup is not None and coming.lookup.asked == []
    scene.coming = []
    assert not await is_asked_to_wait(scene, token), "nothing else opens it"


async def test_what_the_upstream_says_counts_more() -> None:
    """Both have one upstream, which was asked: projects that the coming environment has not got are not waited for."""
    lookup = known(**{"[]_production_1": grant("production", "a", "b"), "[]_production_2": grant("production", "c")})
    former = Place("web", "x:production.old", lookup=lookup)
    scene = replaced(former, Place("web", "*:production.new", lookup=lookup))
    assert await is_asked_to_wait(scene, "[]:production.1") and not scene.log.lines
    scene.coming = [Place("web", "c:production.new", lookup=lookup)]
    assert not await is_asked_to_wait(scene, "[]:production.1")
    assert await is_asked_to_wait(scene, "[]:production.2")


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


async def test_what_opens_something_now() -> None:
    """It goes on, also if the coming environment may open to it. Of two tokens of a request both wait if one does."""
    lookup = known(a_production_1=grant("production", "a"))
    former = Place("web", "*:production.old", lookup=lookup)
    scene = replaced(former, Place("web", "*:test.new", lookup=lookup))
    assert name_of(await scene.look_up("a:production.1")) == "web"
    with pytest.raises(UnavailableError):
        await scene.look_up_all("a:production.1", "a:test.1")
