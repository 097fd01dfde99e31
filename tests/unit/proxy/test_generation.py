"""From one generation to the next: starts, stays and waits of environments, and the keys that open them."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.testing import turns
from support.evaluating import feature
from unit.proxy.generation_scene import GenerationScene, Given, ask, left_over, running


def test_without_a_loop() -> None:
    """A feed is made for each environment, and nothing starts, stops or waits. The only environment has no name."""
    scene = GenerationScene({"a": {}, "b": {}, "c": {}})
    assert scene.names == {"a": 0, "b": 1, "c": 2}
    scene.use({"b": {"client_keys": "other"}, "c": {"name_prefix": "x", "client_keys": "new"}, "d": {}})
    assert scene.names == {"b": 1, "c": 3, "d": 4} and scene.waiting == {}
    assert [feed.number for feed in scene.generations.feeds] == [1, 3, 4]
    assert not any(each.calls for each in scene.made) and len(scene.made) == 5
    assert GenerationScene({}, client_keys="k", flagsvc_api_token="t").names == {"": 0}


async def test_all_start_and_stop() -> None:
    """All stop beside each other; a failed stop is logged without its text, and every other environment stops."""
    scene = await running({"a": {}, "b": {}, "c": {}})
    scene.made[0].error = RuntimeError("some-person")
    scene.made[2].gate.clear()
    stopping = asyncio.ensure_future(scene.generations.stop())
    await turns()
    assert [each.calls for each in scene.made] == [["start", "stop", "stopped"]] * 2 + [["start", "stop"]]
    assert not stopping.done()
    scene.made[2].gate.set()
    await stopping
    assert scene.log.at("error") == ["stopping failed"] and "some-person" not in repr(scene.log.lines)
    assert scene.log.lines[0].fields["environment"] == "a"
    assert scene.changes == 0 and left_over() == []
    assert scene.open("key-a") == [["a"]], "requests are answered from memory"


async def test_draining() -> None:
    """Readiness fails, also that of environments that come later. Requests are answered."""
    scene = await running({}, client_keys="key", flagsvc_api_token="*:a.s")
    assert ask(scene.generations.entrance, "/readyz").status == 200
    scene.generations.drain()
    scene.more |= {"refresh_interval": 1}
    scene.use({})
    await scene.serve(1)
    assert scene.names == {"": 1} and scene.open("key") == [["only"]]
    assert ask(scene.generations.entrance, "/readyz").status == 503
    assert scene.generations.readiness.find_objection() == "draining"


async def test_adding_and_removing() -> None:
    """A new environment starts and answers immediately, a removed one stops in the background. The others are not touched."""
    scene = await running({"a": {}, "b": {}})
    first = scene.environment("a")
    scene.open("key-b")
    scene.use({"a": {}, "c": {}})
    assert scene.generations.sources.former["b"]["flagsvc_answer_cache_misses"] == {(): 1}
    assert scene.names == {"a": 0, "c": 2} and scene.changes == 1 and scene.environment("a") is first
    assert scene.open("key-a", "key-b", "key-c") == [["a"], 401, 503]
    before = list(scene.generations)
    scene.use({"a": {}, "c": {}})
    assert list(scene.generations) == before and scene.changes == 2
    await turns()
    assert [each.calls for each in scene.made] == [["start"], ["start", "stop", "stopped"], ["start"]]


async def test_the_end_waits_for_a_removed_one() -> None:
    """Its last usage metrics are sent before the process ends."""
    scene = await running({"a": {}, "b": {}})
    scene.made[1].gate.clear()
    scene.use({"a": {}})
    stopping = asyncio.ensure_future(scene.generations.stop())
    await turns()
    assert scene.made[1].calls == ["start", "stop"] and not stopping.done()
    scene.made[1].gate.set()
    await stopping
    assert scene.made[1].calls == ["start", "stop", "stopped"]


async def test_an_added_one_is_announced() -> None:
    """When it is ready; the environments of the start are not, and neither is an environment that is removed before."""
    scene = await running({"a": {}})
    scene.use({"a": {}, "b": {}, "c": {}})
    await turns()
    assert scene.log.lines == []
    await scene.serve(1)
    assert [(line.level, line.event, line.fields) for line in scene.log.lines] == [("info", "flagsvc ready", {"environment": "b"})]
    scene.use({"a": {}, "b": {}})
    await turns()
    await scene.serve(2)
    assert len(scene.log.lines) == 1


async def test_other_keys_and_tokens() -> None:
    """The upstream side stays, and what is cached and counted goes on. No environment that answers ever changes."""
    scene = await running({"a": {"flagsvc_api_token": "*:x.s"}, "b": {}})
    before = scene.environment("a")
    before_keys = before.service.keys.client.digests
    changed = {"client_keys": "new", "flagsvc_api_token": "*:x.t", "exp_server_side_sdk_config_tokens": "s"}
    scene.use({"a": changed, "b": {}})
    assert scene.names == {"a": 0, "b": 1} and [each.calls for each in scene.made] == [["start", "token"], ["start"]]
    after = scene.environment("a")
    assert scene.open("new", "key-a") == [["a"], 401] and scene.made[0].token == "*:x.t"
    assert after is not before and before.service.keys.client.digests is before_keys
    assert after.service.sources.cache is before.service.sources.cache
    assert after.service.readiness is before.service.readiness and after.number == before.number


@pytest.mark.parametrize(
    "more",
    [
        {"cors_origin": "https://a"},
        {"max_staleness": 3600},
        {"enable_all_endpoint": True},
        {"enricher_timeout": 7},
        {"enricher_failure": "context"},
    ],
)
async def test_options_that_the_upstream_side_does_not_depend_on(more: dict[str, object]) -> None:
    """They hold at once, with the same configuration, also while the upstream is away: no stale environment gets fresh."""
    scene = await running({"a": {}})
    for _ in range(3):
        assert scene.open("key-a") == [["a"]]
    before = scene.environment("a")
    scene.use({"a": more})
    after = scene.environment("a")
    assert scene.names == {"a": 0} and scene.waiting == {} and scene.open("key-a") == [["a"]]
    assert after.service.settings != before.service.settings and after.number != before.number
    assert after.service.readiness.began == before.service.readiness.began
    cache = after.service.sources.cache
    assert cache is not before.service.sources.cache and cache.totals()[1] == before.service.sources.cache.totals()[1] + 1


async def test_a_replacement_answers_when_it_is_ready() -> None:
    """Until then the environment before answers; then that stops, and the change is told and logged. Its counts go on."""
    scene = await running({"a": {}, "b": {}})
    scene.open("key-a")
    scene.use({"a": {"refresh_interval": 1}, "b": {}})
    replacement = scene.made[2]
    await turns()
    assert (scene.names, scene.waiting, replacement.calls) == ({"a": 0, "b": 1}, {"a": 2}, ["start"])
    replacement.fail()
    await turns()
    assert scene.names == {"a": 0, "b": 1} and dict(scene.generations.sources.former) == {}
    misses = scene.environment("a").service.sources.cache.misses
    replacement.serve("other")
    await turns()
    assert scene.names == {"a": 2, "b": 1} and scene.waiting == {} and scene.open("key-a") == [["other"]]
    assert scene.made[0].calls == ["start", "stop", "stopped"] and scene.changes == 2
    assert scene.generations.sources.former["a"]["flagsvc_answer_cache_misses"] == {(): misses} and misses > 0
    assert scene.log.at("info", "warn") == [
        "an environment is not ready with its new options, the former one still answers",
        "an environment has other options now",
    ]
    assert [line.fields for line in scene.log.lines] == [{"environment": "a"}] * 2
    await scene.generations.stop()
    assert replacement.calls == ["start", "stop", "stopped"]


async def test_a_single_environment_is_replaced_like_one_of_several() -> None:
    """Its log lines and its metrics have no name."""
    scene = await running({}, client_keys="both,old", flagsvc_api_token="*:a.s")
    scene.more |= {"client_keys": "both,new", "name_prefix": "x."}
    scene.use({})
    assert scene.open("both", "old", "new", "nobody") == [["only"], 401, 503, 401]
    await scene.serve(1, "x.there")
    assert scene.open("both", "old", "new", "nobody") == [["x.there"], 401, ["x.there"], 401]
    assert scene.log.at("info") == ["an environment has other options now"]
    assert [line.fields for line in scene.log.lines] == [{}]


async def test_keys_while_a_replacement_is_waited_for() -> None:
    """A key that both list opens the environment before, and any other one does not. One that has ended does not come back."""
    scene = await running({"a": {"client_keys": "one,two,three"}})
    scene.use({"a": {"client_keys": "one,two,new", "flagsvc_api_token": "*:x.t", "name_prefix": "x"}})
    former, replacement = scene.made
    assert scene.open("one", "two", "three", "new") == [["a"], ["a"], 401, 503]
    assert (former.token, scene.environment("a").setup.options.name_prefix) == ("token-a", None)
    scene.use({"a": {"client_keys": "one,new,three", "flagsvc_api_token": "*:x.u", "name_prefix": "x"}})
    assert scene.open("one", "two", "three", "new") == [["a"], 401, 503, 503]
    assert (former.token, replacement.token, replacement.calls) == ("token-a", "*:x.u", ["start", "token"])
    replacement.serve("x")
    await turns()
    assert scene.names == {"a": 1} and scene.open("one", "two", "three", "new") == [["x"], 401, ["x"], ["x"]]


@pytest.mark.parametrize("error", [ConfigurationError(["no"]), OSError("no")])
async def test_one_that_cannot_be_made(error: Exception) -> None:
    """Then nothing changes: no key, no token, nothing that comes or goes. Its new parts are stopped and forgotten."""
    scene = await running({"a": {}, "b": {}, "c": {}, "d": {}})
    scene.use({"a": {}, "b": {}, "c": {}, "d": {"refresh_interval": 1}})
    before, calls, changes = scene.generations.current, [list(each.calls) for each in scene.made], scene.changes
    scene.failing["f"] = error
    renewed: Given = {"a": {"client_keys": "new"}, "d": {"client_keys": "other", "refresh_interval": 1}}
    given: Given = {**renewed, "b": {"name_prefix": "x"}, "e": {}, "f": {}}
    with pytest.raises(type(error)):
        scene.use(given)
    await turns()
    assert scene.generations.current is before and [each.calls for each in scene.made[:5]] == calls
    assert scene.changes == changes and len(scene.made) == 7 and scene.open("key-a", "new") == [["a"], 401]
    assert [each.calls for each in scene.made[5:]] == [["stop", "stopped"]] * 2
    del scene.failing["f"]
    scene.use(given)
    assert scene.names == {"a": 0, "b": 1, "d": 3, "e": 8, "f": 9}
    assert scene.waiting == {"d": 4, "b": 7} and scene.open("key-a", "new", "other") == [401, ["a"], 503]


async def test_a_replacement_replaced_before_it_was_ready() -> None:
    """It stops, and never answers; the next replacement takes the place of the environment that answers."""
    scene = await running({"a": {}})
    scene.use({"a": {"refresh_interval": 1}})
    scene.use({"a": {"refresh_interval": 2}})
    await turns()
    first, second, third = scene.made
    assert second.calls == ["start", "stop", "stopped"] and scene.waiting == {"a": 2}
    second.serve("second")
    await turns()
    assert scene.names == {"a": 0}
    third.serve("third")
    await turns()
    assert scene.open("key-a") == [["third"]] and "stopped" in first.calls
    assert left_over() == [], "no task waits for one that was dropped"


async def test_going_back_before_the_replacement_was_ready() -> None:
    """The environment before has all of its keys again at once, and the replacement stops."""
    scene = await running({"a": {"client_keys": "one,two"}})
    scene.use({"a": {"client_keys": "one,new", "refresh_interval": 1}})
    assert scene.open("one", "two", "new") == [["a"], 401, 503]
    scene.use({"a": {"client_keys": "one,two"}})
    assert scene.open("one", "two", "new") == [["a"], ["a"], 401] and scene.waiting == {}
    await turns()
    assert scene.names == {"a": 0} and scene.made[1].calls == ["start", "stop", "stopped"]
    assert scene.made[0].calls == ["start"] and left_over() == []


async def test_removing_while_a_replacement_is_waited_for() -> None:
    """Both stop, and a later environment of this name is a new one."""
    scene = await running({"a": {}, "b": {}})
    scene.use({"a": {"refresh_interval": 1}, "b": {}})
    scene.use({"b": {}})
    await turns()
    assert scene.names == {"b": 1} and scene.waiting == {}
    assert [each.calls[-1] for each in (scene.made[0], scene.made[2])] == ["stopped"] * 2
    await scene.serve(2)
    assert scene.names == {"b": 1}
    scene.use({"a": {}, "b": {}})
    assert scene.names == {"a": 3, "b": 1}


async def test_the_end_while_a_replacement_is_waited_for() -> None:
    """Both stop, and the replacement does not answer any more."""
    scene = await running({"a": {}})
    scene.use({"a": {"refresh_interval": 1}})
    await scene.generations.stop()
    assert [each.calls[-1] for each in scene.made] == ["stopped"] * 2
    await scene.serve(1)
    assert scene.names == {"a": 0} and left_over() == []


async def test_waiting_for_all() -> None:
    """Each must have a configuration or have failed to get one, and at least one must have it."""
    scene = GenerationScene({"a": {}, "b": {}})
    scene.generations.start()
    waiting = asyncio.ensure_future(scene.generations.wait_ready())
    await turns()
    await scene.serve(0)
    assert scene.generations.is_ready and not waiting.done(), "b has not been tried"
    scene.made[1].fail()
    await waiting
    await scene.generations.stop()
    assert left_over() == []


async def test_waiting_for_one_at_least() -> None:
    """While all have failed, the first one that gets a configuration ends the wait."""
    scene = GenerationScene({"a": {}, "b": {}})
    waiting = asyncio.ensure_future(scene.generations.wait_ready())
    for each in scene.made:
        each.fail()
    await turns()
    assert not waiting.done() and not scene.generations.is_ready
    scene.made[1].serve()
    await waiting


@pytest.mark.parametrize("change", ["remove", "replace", "add"])
async def test_changes_during_the_wait(change: str) -> None:
    """The wait ends for removed environments, and includes added environments; a replacement that gets ready counts."""
    scene = GenerationScene({"a": {}, "b": {}})
    scene.generations.start()
    scene.made[1].fail()
    waiting = asyncio.ensure_future(scene.generations.wait_ready())
    await turns()
    if change == "remove":
        scene.made[1].serve()
        scene.use({"b": {}})
    elif change == "replace":
        scene.made[0].fail()
        scene.use({"a": {"refresh_interval": 1}, "b": {}})
        await turns()
        assert not waiting.done()
        scene.made[2].serve()
    else:
        scene.made[0].serve()
        scene.use({"a": {}, "b": {}, "c": {}})
        await turns()
        assert not waiting.done()
        scene.made[2].fail()
    await waiting


async def test_a_wait_that_is_given_up() -> None:
    """It leaves no task behind."""
    scene = GenerationScene({"a": {}})
    waiting = asyncio.ensure_future(scene.generations.wait_ready())
    await turns()
    waiting.cancel()
    await asyncio.wait([waiting])
    assert left_over() == []


async def test_a_stored_configuration_replaces_only_a_missing_one() -> None:
    """Both a stored and a bootstrap configuration may be older than the served configuration: the upstream must have answered."""
    scene = await running({"a": {}})
    scene.use({"a": {"refresh_interval": 1}})
    scene.made[1].serve_document({"version": 2, "features": [feature("ancient")]}, is_confirmed=False)
    await turns()
    assert scene.open("key-a") == [["a"]] and scene.waiting == {"a": 1}
    scene.made[1].holder.note_check(1.0)
    await turns()
    assert scene.open("key-a") == [["ancient"]] and scene.waiting == {}
    scene = GenerationScene({"a": {}})
    scene.generations.start()
    scene.use({"a": {"refresh_interval": 1}})
    scene.made[1].serve_document({"version": 2, "features": [feature("stored")]}, is_confirmed=False)
    await turns()
    assert scene.open("key-a") == [["stored"]]


async def test_origins_while_a_replacement_is_waited_for() -> None:
    """A preflight allows those of the environment that answers, too."""
    scene = await running({"a": {"cors_origin": "https://old"}, "b": {"cors_origin": "https://b"}})
    scene.use({"a": {"cors_origin": "https://new", "refresh_interval": 1}, "b": {"cors_origin": "https://b"}})

    def allowed() -> list[bool]:
        answers = [ask(scene.generations.entrance, method="OPTIONS", origin=f"https://{each}") for each in ("old", "new")]
        return [b"access-control-allow-origin" in dict(each.headers()) for each in answers]

    assert allowed() == [True, True]
    await scene.serve(2)
    assert allowed() == [False, True]


async def test_a_replacement_that_looks_up_no_tokens() -> None:
    """The environment before looks up none from now on: what is taken away is taken away at once."""
    scene = await running({"a": {"token_validation": "upstream"}, "b": {}})
    assert scene.generations.looks_up_tokens
    scene.use({"a": {"refresh_interval": 1}, "b": {}})
    assert scene.waiting == {"a": 2} and not scene.generations.looks_up_tokens


async def test_a_refused_change_keeps_no_secret_from_an_upstream() -> None:
    """A refused secret is no secret of this process."""
    scene = await running({"a": {}})
    scene.failing["b"] = ConfigurationError(["no"])
    with pytest.raises(ConfigurationError):
        scene.use({"a": {}, "b": {"client_keys": "of-a-caller"}})
    assert scene.generations.setup.own_secrets.may_be_sent("of-a-caller", "any")
    assert not scene.generations.setup.own_secrets.may_be_sent("key-a", "any")
