"""Environments that get other keys or other options while the process runs."""

from __future__ import annotations

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.testing import turns
from support.aio import asynchronous
from support.changing_environments import Given, left_over, running

# ---- renewing and replacing


@asynchronous
async def test_other_keys_and_tokens() -> None:
    """The environment is renewed, and goes on."""
    around = await running({"a": {"flagsvc_api_token": "*:x.s"}, "b": {}})
    changed = {"client_keys": "new", "flagsvc_api_token": "*:x.t", "exp_server_side_sdk_config_tokens": "s"}
    around.renew({"a": changed, "b": {}})
    assert around.names == {"a": 0, "b": 1} and [each.calls for each in around.made] == [["start", "renew"], ["start"]]
    assert (around.made[0].keys, around.made[0].token) == (("new",), "*:x.t")
    assert around.made[0].setup is around.setup.environments[0]


@asynchronous
async def test_a_replacement_answers_when_it_is_ready() -> None:
    """Until then the former one does; then that stops, and the change is told and logged."""
    around = await running({"a": {}, "b": {}})
    around.renew({"a": {"refresh_interval": 1}, "b": {}})
    replacement = around.made[2]
    await turns()
    assert around.names == {"a": 0, "b": 1} and around.environments.coming == {"a": replacement}
    assert around.environments.every == around.made and replacement.calls == ["start"]
    replacement.fail()
    await turns()
    assert around.names == {"a": 0, "b": 1} and around.replaced == []
    replacement.get_ready()
    await turns()
    assert around.names == {"a": 2, "b": 1} and around.environments.coming == {}
    assert around.made[0].calls == ["start", "renew", "stop", "stopped"]
    assert [each["a"] for each in around.seen] == [around.made[0], replacement]
    assert around.replaced == [around.made[0]]
    assert around.log.at("info", "warn") == [
        "an environment is not ready with its new options, the former one still answers",
        "an environment has other options now",
    ]
    assert [line.fields for line in around.log.lines] == [{"environment": "a"}] * 2
    await around.environments.stop()
    assert replacement.calls == ["start", "stop", "stopped"]


@asynchronous
async def test_keys_while_other_flags_are_coming() -> None:
    """A key that both have opens the former one until then, and any other one does not. One that has ended does not come back.

    The former one goes on with its own upstream token and its other options.
    """
    around = await running({"a": {"client_keys": "one,two,three"}})
    around.renew({"a": {"client_keys": "one,two,new", "flagsvc_api_token": "*:x.t", "name_prefix": "x"}})
    former, replacement = around.made
    assert (former.keys, former.token, former.setup.options.name_prefix) == (("one", "two"), "token-a", None)
    assert (replacement.keys, replacement.token) == (("one", "two", "new"), "*:x.t")
    around.renew({"a": {"client_keys": "one,new,three", "flagsvc_api_token": "*:x.u", "name_prefix": "x"}})
    assert (former.keys, former.token) == (("one",), "token-a")
    assert (replacement.keys, replacement.token) == (("one", "new", "three"), "*:x.u")
    assert replacement.calls == ["start", "renew"]
    replacement.get_ready()
    await turns()
    assert around.names == {"a": 1}


@asynchronous
async def test_keys_while_the_same_flags_are_coming() -> None:
    """The former one has the new keys at once, and those that end open nothing, however long the other one takes."""
    around = await running({"a": {}})
    around.renew({"a": {"client_keys": "key-a,new", "refresh_interval": 1}})
    assert [each.keys for each in around.made] == [("key-a", "new")] * 2
    around.renew({"a": {"client_keys": "new", "refresh_interval": 1}})
    assert [each.keys for each in around.made] == [("new",)] * 2


@asynchronous
async def test_a_token_of_another_environment() -> None:
    """The environment is replaced, and not renewed: the former one keeps its token, and a new key does not open its flags."""
    around = await running({"a": {"flagsvc_api_token": "*:development.x"}})
    around.renew({"a": {"flagsvc_api_token": "*:development.y"}})
    assert [each.token for each in around.made] == ["*:development.y"]
    around.renew({"a": {"flagsvc_api_token": "*:production.z", "client_keys": "key-a,new"}})
    assert [(each.keys, each.token) for each in around.made] == [
        (("key-a",), "*:development.y"),
        (("key-a", "new"), "*:production.z"),
    ]


@asynchronous
async def test_a_key_that_moves_from_an_environment_that_is_being_replaced() -> None:
    """It opens the environment that lists it now, and not the former flags, also if nothing else changes here."""
    around = await running({"a": {"client_keys": "one,two"}, "b": {}})
    around.renew({"a": {"client_keys": "one,two", "name_prefix": "x"}, "b": {}})
    assert [each.keys for each in around.made] == [("one", "two"), ("key-b",), ("one", "two")]
    around.renew({"a": {"client_keys": "one", "name_prefix": "x"}, "b": {"client_keys": "key-b,two"}})
    assert [each.keys for each in around.made] == [("one",), ("key-b", "two"), ("one",)]


@asynchronous
@pytest.mark.parametrize("error", [ConfigurationError(["no"]), OSError("no")])
async def test_one_that_cannot_be_made(error: Exception) -> None:
    """Then nothing changes: no key, no token, nothing that comes or goes. What was made for it is stopped and forgotten."""
    around = await running({"a": {}, "b": {}, "c": {}, "d": {}})
    around.renew({"a": {}, "b": {}, "c": {}, "d": {"refresh_interval": 1}})
    before = [(each.setup, list(each.calls)) for each in around.made]
    coming, seen = around.environments.coming, list(around.seen)
    around.failing["f"] = error
    renewed: Given = {"a": {"client_keys": "new"}, "d": {"client_keys": "other", "refresh_interval": 1}}
    given: Given = {**renewed, "b": {"name_prefix": "x"}, "e": {}, "f": {}}
    with pytest.raises(type(error)):
        around.renew(given)
    await turns()
    assert [(each.setup, each.calls) for each in around.made[:5]] == before
    assert around.names == {"a": 0, "b": 1, "c": 2, "d": 3} and around.environments.coming == coming
    assert around.seen == seen and len(around.made) == 7
    assert [each.calls for each in around.made[5:]] == [["stop", "stopped"]] * 2
    del around.failing["f"]
    around.renew(given)
    assert around.names == {"a": 0, "b": 1, "d": 3, "e": 8, "f": 9}
    assert list(around.environments.coming) == ["d", "b"] and around.made[4].keys == ("other",)


@asynchronous
async def test_a_replacement_replaced_before_it_was_ready() -> None:
    """It stops, and never answers; the next one takes the place of the one that answers."""
    around = await running({"a": {}})
    around.renew({"a": {"refresh_interval": 1}})
    around.renew({"a": {"refresh_interval": 2}})
    await turns()
    first, second, third = around.made
    assert second.calls == ["start", "stop", "stopped"] and around.environments.coming == {"a": third}
    second.get_ready()
    await turns()
    assert around.names == {"a": 0}
    third.get_ready()
    await turns()
    assert around.names == {"a": 2} and "stopped" in first.calls
    assert left_over() == [], "no task waits for one that was dropped"


@asynchronous
async def test_going_back_before_the_replacement_was_ready() -> None:
    """The former options come as another replacement."""
    around = await running({"a": {}})
    around.renew({"a": {"refresh_interval": 1}})
    around.renew({"a": {}})
    around.made[2].get_ready()
    await turns()
    assert around.names == {"a": 2} and around.made[2].setup.options.refresh_interval == 5000
    assert around.made[1].calls == ["start", "stop", "stopped"] and "stopped" in around.made[0].calls


@asynchronous
async def test_removing_while_a_replacement_is_coming() -> None:
    """Both stop, and a later one of this name is a new one."""
    around = await running({"a": {}, "b": {}})
    around.renew({"a": {"refresh_interval": 1}, "b": {}})
    around.renew({"b": {}})
    await turns()
    assert around.names == {"b": 1} and around.environments.coming == {}
    assert [each.calls[-1] for each in (around.made[0], around.made[2])] == ["stopped"] * 2
    around.made[2].get_ready()
    await turns()
    assert around.names == {"b": 1}
    around.renew({"a": {}, "b": {}})
    assert around.names == {"a": 3, "b": 1}


@asynchronous
async def test_the_end_while_a_replacement_is_coming() -> None:
    """Both stop, and the replacement does not answer any more."""
    around = await running({"a": {}})
    around.renew({"a": {"refresh_interval": 1}})
    await around.environments.stop()
    assert [each.calls[-1] for each in around.made] == ["stopped"] * 2
    around.made[1].get_ready()
    await turns()
    assert around.names == {"a": 0} and left_over() == []
