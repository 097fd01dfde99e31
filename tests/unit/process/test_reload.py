"""What a running process reloads of its configuration, when, and what it refuses."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.process.reload import KeyOverlap
from flagsvc.testing import turns
from support.aio import until
from unit.process.reload_scene import ReloadScene, write

URL = "http://127.0.0.1:1/api"


def test_keys_that_are_exchanged_open_a_while_longer() -> None:
    """Replaced keys are accepted until their time is over."""
    overlap = KeyOverlap(60)
    overlap.record_change(["old", "both"], ["both", "new"], 100.0)
    assert overlap.accepted_keys(["both", "new"], 159.9) == ("both", "new", "old")
    assert overlap.next_expiry == 160.0
    assert overlap.accepted_keys(["both", "new"], 160.0) == ("both", "new")
    assert overlap.next_expiry is None


def test_keys_that_are_taken_away_end_at_once() -> None:
    """Removed keys without a replacement are revoked at once."""
    overlap = KeyOverlap(60)
    overlap.record_change(["stays", "goes"], ["stays"], 100.0)
    assert overlap.accepted_keys(["stays"], 100.0) == ("stays",) and overlap.next_expiry is None


def test_each_key_has_a_time_of_its_own() -> None:
    """A second replacement does not prolong the time of the first one's keys. A key that returns is an ordinary key."""
    overlap = KeyOverlap(60)
    overlap.record_change(["one"], ["two"], 0.0)
    overlap.record_change(["two"], ["three"], 30.0)
    assert overlap.accepted_keys(["three"], 59.0) == ("three", "one", "two") and overlap.next_expiry == 60.0
    assert overlap.accepted_keys(["three"], 61.0) == ("three", "two") and overlap.next_expiry == 90.0
    overlap.record_change(["three"], ["two", "four"], 62.0)
    assert overlap.accepted_keys(["two", "four"], 100.0) == ("two", "four", "three") and overlap.next_expiry == 122.0


@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True), min_size=1, max_size=8))
def test_what_opens_after_any_changes(steps: list[list[str]]) -> None:
    """The keys of the options are always accepted. Other keys are accepted only within the overlap after their end."""
    overlap, last_seen, before = KeyOverlap(3), dict[str, float](), steps[0]
    for moment, keys in enumerate(steps):
        last_seen |= dict.fromkeys(before, float(moment))
        overlap.record_change(before, keys, float(moment))
        opens = overlap.accepted_keys(keys, float(moment))
        assert list(opens[: len(keys)]) == keys and len(set(opens)) == len(opens)
        assert all(moment - last_seen[key] < 3 for key in opens[len(keys) :])
        before = keys


def usual(folder: Path, **more: str) -> ReloadScene:
    """Return a scene whose token and keys are in files."""
    environment = {
        "FLAGSVC_URL": URL,
        "FLAGSVC_API_TOKEN_FILE": write(folder, "token", "api-token-one"),
        "FLAGSVC_PROXY_CLIENT_KEYS_FILE": write(folder, "keys", "first-key"),
    }
    return ReloadScene(folder, environment | more)


@asynccontextmanager
async def scene(folder: Path, **more: str) -> AsyncIterator[ReloadScene]:
    """Give a scene whose reader runs."""
    made = usual(folder, **more)
    async with made.reload:
        await turns()
        yield made


async def test_a_file_with_other_content_is_read_again(tmp_path: Path) -> None:
    """Files are looked at, and a new date of the same content is no change: nothing is read again. New keys are applied together
    with former ones, and later alone. No key is written anywhere.
    """
    async with scene(tmp_path) as around:
        for _ in range(3):
            os.utime(tmp_path / "keys", (1, 1))
            await around.look()
        assert around.reads == 0 and around.events == []
        await around.change("keys", "second-key,third-key")
        assert [each.client_keys for each in around.applied] == [("second-key", "third-key", "first-key")]
        await around.clock.advance(60)
        assert [each.client_keys for each in around.applied[1:]] == [("second-key", "third-key")]
        assert ("info", "keys and tokens have changed") in around.events
        assert "-key" not in repr(around.log.lines)


async def test_a_change_before_the_first_look(tmp_path: Path) -> None:
    """What changed between the reading and the beginning of the watch is noticed."""
    made = usual(tmp_path)
    made.write("keys", "second-key")
    async with made.reload:
        await turns()
        await made.look()
        assert made.applied[-1].client_keys == ("second-key", "first-key")


async def test_a_file_that_is_being_written(tmp_path: Path) -> None:
    """It is read when two looks at it are alike: half of a list of keys is not taken for all of it."""
    async with scene(tmp_path) as around:
        around.write("keys", "first")
        await around.clock.advance(2)
        await until(lambda: 0.2 in around.clock.sleeping)
        around.write("keys", "first-key,second-key")
        await around.clock.advance(0.2)
        await until(lambda: 0.2 in around.clock.sleeping)
        assert around.reads == 0
        await around.clock.advance(0.2)
        await until(lambda: around.applied)
        assert around.reads == 1 and around.applied[0].client_keys == ("first-key", "second-key")


@pytest.mark.parametrize("text", [" ", "tok\x00en", "x" * 70_000, None], ids=["empty", "odd", "long", "gone"])
async def test_a_wrong_configuration_is_refused(tmp_path: Path, text: str | None) -> None:
    """One line names the problem, without the content. The former configuration stays until a valid configuration comes."""
    async with scene(tmp_path) as around:
        around.write("token", text) if text is not None else (tmp_path / "token").unlink()
        await around.change("keys", "second-key")
        await around.look()
        assert around.applied == [] and around.reads == 1
        [line] = around.log.lines
        assert (line.level, line.event) == ("error", "the configuration cannot be read again, the old one stays")
        assert "flagsvcApiToken" in str(line.fields["problems"]) and "second-key" not in repr(line)
        await around.change("token", "api-token-two")
        assert around.applied[-1].client_keys[0] == "second-key"
        assert "the configuration is read again" in around.log.at("warn")
        await around.change("keys", "third-key")
        assert around.log.at("warn").count("the configuration is read again") == 1, "it is told once"


async def test_what_needs_a_restart(tmp_path: Path) -> None:
    """One line names changed options that need a restart, in each reload. The others are applied."""
    async with scene(tmp_path) as around:
        around.environment |= {"LOG_LEVEL": "debug", "PORT": "7"}
        await around.change("keys", "second-key")
        [line] = [line for line in around.log.lines if line.level == "warn"]
        assert (line.event, line.fields) == ("these options have changed and need a restart", {"options": "port, logLevel"})
        assert around.applied[0].log_level == "warn" and around.applied[0].client_keys[0] == "second-key"
        await around.change("keys", "third-key")
        assert len(around.log.at("warn")) == 1, "it is told once"
        del around.environment["PORT"], around.environment["LOG_LEVEL"]
        await around.change("keys", "fourth-key")
        assert len(around.log.at("warn")) == 1, "what is as it was needs no restart"


async def test_keys_that_come_with_other_flags(tmp_path: Path) -> None:
    """They are applied with everything else. Former keys do not open other flags: there is no overlap."""
    async with scene(tmp_path) as around:
        around.environment |= {"FLAGSVC_PROJECT_NAME": "other"}
        around.write("keys", "second-key")
        await around.change("token", "*:development.two")
        [applied] = around.applied
        assert (applied.project_name, applied.client_keys) == ("other", ("second-key",))
        assert applied.flagsvc_api_token == around.reload.options.flagsvc_api_token == "*:development.two"
        assert around.events == [("info", "options have changed")]
        assert around.log.lines[0].fields == {"options": "flagsvcApiToken, projectName, clientKeys"}
        around.write("keys", "third-key")
        around.environment |= {"FLAGSVC_FETCH_INTERVAL": "7000"}
        await around.look()
        assert around.applied[1].client_keys == ("third-key", "second-key"), "the flags are the same"
        assert around.applied[1].refresh_interval == 7000


async def test_asking(tmp_path: Path) -> None:
    """A request reloads everything, also without a file. It logs if nothing has changed."""
    async with scene(tmp_path) as around:
        await until(around.reload.request_reload().done)
        assert around.events == [("info", "the configuration was read again, nothing has changed")]
        around.environment["EXP_SERVER_SIDE_SDK_CONFIG_TOKENS"] = "server-token"
        around.reload.request_reload()
        await until(lambda: around.applied)
        assert around.applied[0].exp_server_side_sdk_config_tokens == ("server-token",)
        assert around.clock.sleeping == [2], "there was no token before that could end"


async def test_without_a_watch(tmp_path: Path) -> None:
    """With watchInterval 0, or without files, nothing is watched. Requests still work."""
    for more in ({"FLAGSVC_WATCH_INTERVAL": "0"}, {"FLAGSVC_API_TOKEN": "t", "FLAGSVC_PROXY_CLIENT_KEYS": "k"}):
        async with scene(tmp_path, **more) as around:
            assert around.clock.sleeping == []
            around.environment["FLAGSVC_PROXY_CLIENT_KEYS"] = "second-key"
            around.reload.request_reload()
            await until(lambda: around.applied)


async def test_what_can_be_read_only_once(tmp_path: Path) -> None:
    """A secret from a pipe cannot be read again. Each reload logs that once and does not wait for the pipe."""
    reading, writing = os.pipe()
    os.write(writing, b"api-token-one")
    os.close(writing)
    async with scene(tmp_path, FLAGSVC_API_TOKEN_FILE=f"/dev/fd/{reading}") as around:
        os.close(reading)
        around.write("keys", "second-key")
        for _ in range(3):
            await around.look()
        assert around.reads == 0 and around.applied == []
        [line] = around.log.lines
        assert f"`/dev/fd/{reading}` is no file that can be read again" in str(line.fields["problems"])


async def test_a_pipe_in_the_place_of_a_file(tmp_path: Path) -> None:
    """A pipe in place of a file is logged and not opened, because that could block. A file in its place is read."""
    async with scene(tmp_path) as around:
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "pipe").rename(tmp_path / "keys")
        around.reload.request_reload()
        await until(lambda: around.log.lines)
        [line] = around.log.lines
        assert "keys` is no file that can be read again" in str(line.fields["problems"]) and around.reads == 0
        await around.change("keys", "second-key")
        assert around.applied[-1].client_keys[0] == "second-key"


async def test_a_file_of_options(tmp_path: Path) -> None:
    """The configuration file is watched as files of secrets are, and so is a file of secrets that it names only later."""
    file = tmp_path / "flagsvc.toml"
    file.write_text('clientKeys = ["first-key"]\n')
    made = usual(tmp_path, FLAGSVC_CONFIG=str(file), FLAGSVC_PROXY_CLIENT_KEYS_FILE="")
    async with made.reload:
        await turns()
        made.write("later", "second-key")
        file.write_text(f'clientKeysFile = "{tmp_path}/later"\n')
        await made.look()
        assert made.applied[-1].client_keys[0] == "second-key"
        await made.change("later", "third-key")
        assert made.applied[-1].client_keys[:2] == ("third-key", "first-key")
