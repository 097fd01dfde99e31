"""Which upstream is asked about a token, and which environment it opens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.proxy.generations.admission import UNKNOWN_SCOPE_S
from flagsvc.proxy.tokens import Admission, TokenGrant, TokenScope, UnavailableError
from support.aio import asynchronous
from unit.proxy.directory_scene import DirectoryScene, FakeLookup, Place, grant, known, name_of, number_of, upstream_at


def both(one: FakeLookup, two: FakeLookup, own_of_two: str = "*:production.up") -> DirectoryScene:
    """Return a directory of two environments, each with an upstream of its own."""
    return DirectoryScene(Place("one", "*:production.up", "https://one", one), Place("two", own_of_two, "https://two", two))


@pytest.mark.parametrize(
    ("own", "token", "told", "projects"),
    [
        ("*:production.up", "*:production.1", grant("production"), None),
        ("*:production.up", "a:production.1", grant("production", "a"), frozenset("a")),
        ("*:production.up", "[]:production.1", grant("production", "a", "b"), frozenset("ab")),
        ("a:production.up", "a:production.1", grant("production", "a"), None),
        ("*:production.up", "legacy", grant("production", "a"), frozenset("a")),
    ],
)
async def test_what_a_token_opens(own: str, token: str, told: TokenGrant, projects: frozenset[str] | None) -> None:
    """The projects that the upstream tells; all of the environment if its own token has no others."""
    scene = DirectoryScene(Place("", own, lookup=FakeLookup({token: told})))
    admission = await scene.look_up(token)
    assert admission == Admission(number_of(""), False, told.scope, projects is None)
    assert admission.projects == projects


@pytest.mark.parametrize(
    ("own", "token", "told"),
    [
        ("*:production.up", "*:production.1", grant("development")),
        ("a:production.up", "*:production.1", grant("production")),
        ("a:production.up", "b:production.1", grant("production", "b")),
        ("a:production.up", "[]:production.1", grant("production", "a", "b")),
        ("*:production.up", "legacy", grant("development")),
    ],
)
async def test_a_valid_token_of_something_else(own: str, token: str, told: TokenGrant) -> None:
    """It opens nothing. Operators are told once, without the token."""
    scene = DirectoryScene(Place("", own, lookup=FakeLookup({token: told})))
    for _ in range(3):
        assert await scene.look_up(token) is None
    [line] = scene.log.lines
    assert line.level == "warn" and line.fields["token_environment"] == told.scope.environment
    assert token not in str(scene.log.lines)


@pytest.mark.parametrize("token", ["*:development.1", "a:development.1", "*:*.admin", "[]:productio.1"])
async def test_a_token_that_names_another_environment(token: str) -> None:
    """The refusal needs no question, so that this upstream does not learn the token."""
    scene = DirectoryScene(Place("", "*:production.up", lookup=FakeLookup({token: grant("production")})))
    assert scene.directory.is_refused(token)
    assert await scene.look_up(token) is None and scene.asked() == {}


async def test_a_token_that_one_upstream_knows() -> None:
    """Upstreams with an environment of its name are asked in turn, until an upstream knows it."""
    one, two = FakeLookup({}), known(a_production_1=grant("production", "a"))
    scene = both(one, two, "b:production.up")
    scene.places["wide"] = Place("wide", "*:production.up", "https://two", two)
    for _ in range(3):
        assert name_of(await scene.look_up("a:production.1")) == "wide"
    assert one.asked == ["a:production.1"] and len(two.asked) == 3
    assert not scene.directory.is_refused("a:production.1")


async def test_two_tenants_behind_one_address() -> None:
    """What tells them apart is a header for the gateway. Each tenant opens its own environments only, and each can be asked."""
    of_a, of_b = known(a_production_1=grant("production", "a")), known(a_production_2=grant("production", "a"))
    scene = DirectoryScene(
        Place("one", "*:production.one", lookup=of_a, tenant="a"), Place("two", "a:production.two", lookup=of_b, tenant="b")
    )
    assert name_of(await scene.look_up("a:production.1")) == "one", "the narrower one is of another tenant"
    assert name_of(await scene.look_up("a:production.2")) == "two"
    assert await scene.look_up("legacy") is None and "legacy" not in of_a.asked + of_b.asked


async def test_one_upstream_cannot_be_asked() -> None:
    """What the other one knows counts; what it does not know is no answer."""
    away, there = FakeLookup({}), known(all_production_1=grant("production"))
    away.fault = UnavailableError(3.0)
    scene = both(away, there)
    found = await scene.look_up("*:production.1")
    assert found is not None and found.environment == number_of("two")
    with pytest.raises(UnavailableError) as caught:
        await scene.look_up("*:production.2")
    assert caught.value.seconds == 3.0


async def test_many_tokens_at_once() -> None:
    """Each upstream is asked once, about all tokens that it may know. A token that cannot be looked up fails the whole request."""
    one = known(all_production_1=grant("production"), all_production_2=grant("production", server=True))
    two = known(all_development_1=grant("development"))
    scene = both(one, two, "*:development.up")
    tokens = ["*:production.1", "*:development.1", "*:production.2", "*:production.3", "*:test.1"]
    found = await scene.look_up_all(*tokens)
    assert {token: each.environment for token, each in found.items()} == {
        "*:production.1": number_of("one"),
        "*:development.1": number_of("two"),
        "*:production.2": number_of("one"),
    }
    assert (len(one.deadlines), len(two.deadlines)) == (1, 1) and sorted(one.asked) == tokens[0:1] + tokens[2:4]
    two.fault = UnavailableError(3.0)
    with pytest.raises(UnavailableError):
        await scene.look_up_all(*tokens)
    assert await scene.look_up_all("*:test.1") == {}


async def test_one_deadline_for_all_upstreams() -> None:
    """However many upstreams are asked, a request waits until its deadline; all upstreams have equal shares of the time."""
    lookups = [FakeLookup({}) for _ in range(4)]
    scene = DirectoryScene(*(Place(str(at), "*:production.up", f"https://{at}", each) for at, each in enumerate(lookups)))
    began = asyncio.get_running_loop().time()
    await scene.directory.look_up_all(["*:production.1"], b"", began + 8)
    [[first], [second], [third], [last]] = [each.deadlines for each in lookups]
    assert began + 1.9 < first < began + 3 and first < second < third < last <= began + 8


async def test_the_deadline_holds_for_the_upstreams_own_token_too() -> None:
    """What that opens is asked about within the time of the same request."""
    lookup = FakeLookup({"very-secret": grant("production"), "*:production.1": grant("production")})
    scene = DirectoryScene(Place("", "very-secret", lookup=lookup))
    deadline = asyncio.get_running_loop().time() + 8
    assert await scene.directory.look_up_all(["*:production.1"], b"", deadline)
    assert lookup.deadlines[1] == deadline


async def test_the_upstreams_own_token_tells_nothing() -> None:
    """Then the upstream is asked what its own token opens, and callers wait until it is known."""
    lookup = FakeLookup({"very-secret": grant("production", "a", server=True), "a:production.1": grant("production", "a")})
    scene = DirectoryScene(Place("", "very-secret", lookup=lookup))
    assert await scene.look_up("a:production.1") == Admission(number_of(""), False, TokenScope("production", frozenset("a")), True)
    assert lookup.asked == ["a:production.1", "very-secret"]
    lookup.grants = {"a:production.1": grant("production", "a")}
    with pytest.raises(UnavailableError) as caught:
        await scene.look_up("a:production.1")
    assert caught.value.seconds == UNKNOWN_SCOPE_S and "secret" not in str(scene.log.lines)


async def test_an_environment_that_is_replaced_while_the_upstreams_own_token_is_asked_about() -> None:
    """The answer means the replaced environment, and not its successor of the same name."""
    lookup = FakeLookup({"very-secret": grant("production"), "*:production.1": grant("production")})
    scene = DirectoryScene(Place("x", "very-secret", lookup=lookup))
    former = scene.places["x"]

    def replace() -> None:
        if lookup.asked[-1] == "very-secret":
            scene.places["x"] = Place("another", "*:development.up", lookup=lookup)

    lookup.meanwhile = replace
    assert await scene.look_up("*:production.1") == Admission(former.number, False, TokenScope("production", None), True)
    assert scene.places["x"].number != former.number


async def test_a_text_without_an_environment_while_another_upstream_is_there() -> None:
    """It is asked about nowhere, also if the other environment looks up nothing: it may be a mistyped or former key of that one."""
    one = Place("one", "*:production.up", "https://one", FakeLookup({"legacy": grant("production")}))
    for other, is_asked in ((Place("two", "*:test.up"), True), (Place("two", "*:test.up", "https://two"), False)):
        scene = DirectoryScene(one, other)
        assert scene.directory.is_refused("legacy") is not is_asked
        assert (await scene.look_up("legacy") is not None) is is_asked
    assert scene.places["one"].lookup is one.lookup and scene.asked() == {"one": ["legacy"]}


async def test_a_secret_is_not_asked_about() -> None:
    """Not even if the upstream would know it, while callers with other tokens are answered."""
    lookup = FakeLookup(dict.fromkeys(("listed", "own", "legacy"), grant("production")))
    scene = DirectoryScene(Place("", "*:production.up", lookup=lookup))
    assert scene.directory.is_refused("listed") and not scene.directory.is_refused("legacy")
    assert await scene.look_up("listed") is None
    assert await scene.look_up("own") and await scene.look_up("legacy")
    assert lookup.asked == ["own", "legacy"]


def test_what_is_known_to_open_nothing() -> None:
    """A token is refused without waiting if every upstream that may know it has refused it."""
    one, two = FakeLookup({}), FakeLookup({})
    scene = both(one, two)
    one.refused.add("*:production.1")
    assert not scene.directory.is_refused("*:production.1")
    two.refused.add("*:production.1")
    assert scene.directory.is_refused("*:production.1")


ENVIRONMENTS = st.sampled_from(["production", "development", "test"])
SCOPES = st.tuples(st.sampled_from(["*", "a", "b"]), ENVIRONMENTS)


@given(
    st.lists(st.tuples(SCOPES, st.sampled_from(["https://one", "https://two"])), min_size=1, max_size=4),
    SCOPES,
    SCOPES,
    st.sampled_from(["https://one", "https://two"]),
)
@asynchronous
async def test_no_upstream_gives_away_what_is_not_its_own(
    places: Sequence[tuple[tuple[str, str], str]], named: tuple[str, str], told: tuple[str, str], knowing: str
) -> None:
    """For any environments, any token and any lie of an upstream: it opens only what the upstream's own tokens cover."""
    token = f"{named[0]}:{named[1]}.1"
    lie = TokenGrant(False, scope_of(told))
    scene = DirectoryScene(
        *(
            Place(str(number), f"{own[0]}:{own[1]}.up", url, FakeLookup({token: lie} if url == knowing else {}))
            for number, (own, url) in enumerate(places)
        )
    )
    found = await scene.look_up(token)
    asked = [place for place in scene.places.values() if place.lookup is not None and place.lookup.asked]
    assert len({place.upstream_id for place in asked}) == len(asked)
    assert all(f":{named[1]}." in place.token for place in asked)
    if found is not None:
        [place] = [each for each in scene.places.values() if each.number == found.environment]
        own = places[int(place.name)][0]
        assert place.upstream_id == upstream_at(knowing) and scope_of(own).covers(lie.scope)
        assert found.is_whole is (scope_of(own) == lie.scope)


def scope_of(pair: tuple[str, str]) -> TokenScope:
    """Return a scope of one project, or of all."""
    return TokenScope(pair[1], None if pair[0] == "*" else frozenset([pair[0]]))
