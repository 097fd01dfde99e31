"""What a running process with several environments reloads: keys, options, and the list of environments."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from flagsvc.core.errors import ExtensionError
from flagsvc.testing import turns
from support.aio import until
from support.environment_samples import write_toml
from unit.process.reload_scene import ReloadScene

Tables = Mapping[str, Mapping[str, object]]
URL = "file:///flags.json"


def change(folder: Path, tables: Tables, head: str = "") -> Path:
    """Write the configuration file; an environment without given keys has a key with its name."""
    complete = {name: {"flagsvcUrl": URL, "clientKeys": [f"key-{name}"], **table} for name, table in tables.items()}
    write_toml(folder / "new", complete, head)
    return (folder / "new").rename(folder / "flagsvc.toml")


@asynccontextmanager
async def scene(folder: Path, tables: Tables, head: str = "") -> AsyncIterator[ReloadScene]:
    """Give a scene whose reader runs, with a configuration file."""
    made = ReloadScene(folder, {"FLAGSVC_CONFIG": str(change(folder, tables, head))})
    async with made.reload:
        await turns()
        yield made


async def reload(around: ReloadScene, tables: Tables, head: str = "") -> None:
    """Change the file, and wait until it was read again."""
    change(around.folder, tables, head)
    await around.look()


def accepted(around: ReloadScene, *, servers: bool = False) -> dict[str, tuple[str, ...]]:
    """Return the client keys, or the tokens, of each environment that were applied last."""
    field = "exp_server_side_sdk_config_tokens" if servers else "client_keys"
    return {name: getattr(part, field) for name, part in around.applied[-1].environments}


def fields(around: ReloadScene, level: str, event: str) -> list[dict[str, object]]:
    """Return the fields of each line of one event."""
    return [line.fields for line in around.log.lines if (line.level, line.event) == (level, event)]


async def test_tokens_of_one_environment(tmp_path: Path) -> None:
    """They have their own overlap in each environment."""
    tokens = "expServerSideSdkConfig.tokens"
    async with scene(tmp_path, {"a": {tokens: ["t1"]}, "b": {tokens: ["t2"]}}) as around:
        await reload(around, {"a": {tokens: ["t3"]}, "b": {tokens: ["t2"]}})
        await around.pass_time(30)
        await reload(around, {"a": {tokens: ["t3"]}, "b": {tokens: ["t4"]}})
        assert accepted(around, servers=True) == {"a": ("t3", "t1"), "b": ("t4", "t2")}
        assert accepted(around) == {"a": ("key-a",), "b": ("key-b",)}
        await around.pass_time(30)
        assert accepted(around, servers=True) == {"a": ("t3",), "b": ("t4", "t2")}
        await around.pass_time(60)
        assert accepted(around, servers=True) == {"a": ("t3",), "b": ("t4",)}
        assert fields(around, "info", "environments have changed") == [{"changed": "a"}, {"changed": "b"}]
        assert fields(around, "info", "keys and tokens have changed") == []


async def test_a_key_that_moves(tmp_path: Path) -> None:
    """It opens the other environment alone, at once; what was exchanged beside it has its overlap."""
    async with scene(tmp_path, {"a": {"clientKeys": ["moves", "stays"]}, "b": {}}) as around:
        await reload(around, {"a": {"clientKeys": ["new"]}, "b": {"clientKeys": ["key-b", "moves"]}})
        assert accepted(around) == {"a": ("new", "stays"), "b": ("key-b", "moves")}
        await reload(around, {"a": {"clientKeys": ["new"]}, "b": {}})
        assert accepted(around) == {"a": ("new", "stays"), "b": ("key-b",)}, "one that was taken away opens nothing again"


async def test_a_key_that_moves_to_another_kind(tmp_path: Path) -> None:
    """A client key that becomes a token is no client key any more."""
    async with scene(tmp_path, {"a": {"clientKeys": ["one", "two"]}}) as around:
        await reload(around, {"a": {"clientKeys": ["new"], "expServerSideSdkConfig.tokens": ["two"]}})
        assert accepted(around) == {"a": ("new", "one")} and accepted(around, servers=True) == {"a": ("two",)}


async def test_former_keys_of_an_environment_that_is_gone(tmp_path: Path) -> None:
    """They end with it. A later environment of its name does not have them."""
    async with scene(tmp_path, {"a": {}, "b": {}}) as around:
        await reload(around, {"a": {"clientKeys": ["new"]}, "b": {}})
        await reload(around, {"b": {}})
        await reload(around, {"a": {"clientKeys": ["newer"]}, "b": {}})
        assert accepted(around) == {"a": ("newer",), "b": ("key-b",)}


async def test_files_of_secrets_of_an_environment(tmp_path: Path) -> None:
    """They are watched, also for an environment that came later."""
    (tmp_path / "one").write_text("first")
    (tmp_path / "two").write_text("second")
    async with scene(tmp_path, {"a": {"clientKeys": "", "clientKeysFile": "one"}}) as around:
        await reload(around, {name: {"clientKeys": "", "clientKeysFile": file} for name, file in (("a", "one"), ("b", "two"))})
        await around.change("one", "third")
        await around.change("two", "fourth")
        assert accepted(around) == {"a": ("third", "first"), "b": ("fourth", "second")}


async def test_environments_that_come_and_go(tmp_path: Path) -> None:
    """They are applied at once, in the order of the file, and one line tells which."""
    async with scene(tmp_path, {"a": {}, "b": {}, "c": {}}) as around:
        await reload(around, {"d": {}, "a": {}, "b": {"refreshInterval": 1}})
        assert [name for name, _ in around.applied[-1].environments] == ["d", "a", "b"]
        assert fields(around, "info", "environments have changed") == [{"added": "d", "removed": "c", "replacing": "b"}]
        around.reload.request_reload()
        await until(lambda: len(around.log.lines) == 2)
        assert around.events[-1] == ("info", "the configuration was read again, nothing has changed")
        assert len(around.applied) == 1


async def test_options_that_all_inherit(tmp_path: Path) -> None:
    """They change in each environment that has no value of its own, and the process needs no restart."""
    async with scene(tmp_path, {"a": {}, "b": {"refreshInterval": 1}}) as around:
        await reload(around, {"a": {}, "b": {"refreshInterval": 1}}, "refreshInterval = 7000")
        assert [part.refresh_interval for _, part in around.applied[-1].environments] == [7000, 1]
        assert fields(around, "info", "environments have changed") == [{"replacing": "a"}]
        assert around.log.at("warn") == []


async def test_other_flags_and_other_keys(tmp_path: Path) -> None:
    """Former keys do not open other flags: there is no overlap. The log tells what happens to each environment."""
    token = {"flagsvcUrl": "http://127.0.0.1:1/api", "flagsvcApiToken": "*:development.x"}
    async with scene(tmp_path, {"a": token, "b": {}, "c": {}}) as around:
        await reload(
            around,
            {
                "a": {**token, "flagsvcApiToken": "*:production.y", "clientKeys": ["new-a"]},
                "b": {"refreshInterval": 1, "clientKeys": ["new-b"]},
                "c": {"clientKeys": ["new-c"]},
            },
        )
        assert accepted(around) == {"a": ("new-a",), "b": ("new-b", "key-b"), "c": ("new-c", "key-c")}
        assert fields(around, "info", "environments have changed") == [{"replacing": "a, b", "changed": "c"}]
        assert around.log.at("warn", "error") == [] and "-a" not in repr(around.log.lines)


@pytest.mark.parametrize("several_first", [True, False])
async def test_one_environment_or_several(tmp_path: Path, several_first: bool) -> None:
    """A change from one kind to the other needs a restart; keys and environments stay as they are until then, and can change."""
    one: tuple[Tables, str] = ({}, f'flagsvcUrl = "{URL}"\nclientKeys = ["one"]')
    several: tuple[Tables, str] = ({"a": {"clientKeys": ["one"]}, "b": {}}, "")
    first, second = (several, one) if several_first else (one, several)
    async with scene(tmp_path, *first) as around:
        await reload(around, *second)
        assert around.log.at("warn") == ["one environment or several: that has changed and needs a restart"]
        assert around.applied == [] and around.log.at("info", "error") == []
        await reload(around, first[0], first[1] + "\nrefreshInterval = 1")
        [applied] = around.applied
        assert {part.refresh_interval for _, part in applied.environments or (("", applied),)} == {1}


async def test_a_wrong_environment_is_refused(tmp_path: Path) -> None:
    """The whole configuration stays as it was: no environment changes because of a mistake in another one."""
    wrong: list[Tables] = [
        {"a": {"clientKeys": ["new"]}, "b": {"refreshInterval": "soon"}},
        {"a": {"clientKeys": ["new"]}, "b": {"clientKeys": ["new"]}},
        {"a": {"clientKeys": ["new"]}, "b c": {}},
        {"a": {"clientKeys": ["new"]}, "b": {"port": 1}},
    ]
    async with scene(tmp_path, {"a": {}, "b": {}}) as around:
        for number, tables in enumerate(wrong, 1):
            await reload(around, tables)
            assert around.applied == [] and len(around.log.lines) == number
        assert {(line.level, line.event) for line in around.log.lines} == {
            ("error", "the configuration cannot be read again, the old one stays")
        }
        assert around.log.at("warn") == []
        await reload(around, {"a": {"clientKeys": ["new"]}, "b": {}})
        assert accepted(around) == {"a": ("new", "key-a"), "b": ("key-b",)}
        assert around.log.at("warn") == ["the configuration is read again"]


async def test_custom_code_that_cannot_be_used(tmp_path: Path) -> None:
    """The line names the problem, and what is in use stays. The next reload tries again."""
    async with scene(tmp_path, {"a": {"clientKeys": ["one", "two"]}}) as around:
        around.refusal = ExtensionError("custom strategies file `none.py` does not exist")
        await reload(around, {"a": {"clientKeys": ["new"]}, "b": {"customStrategies": "none.py"}})
        [line] = around.log.lines
        assert (line.level, line.event) == ("error", "the configuration cannot be read again, the old one stays")
        assert line.fields == {"problems": "custom strategies file `none.py` does not exist"}
        assert [name for name, _ in around.reload.options.environments] == ["a"]
        around.refusal = None
        around.reload.request_reload()
        await until(lambda: around.applied)
        assert accepted(around) == {"a": ("new", "one", "two"), "b": ("key-b",)}
        await until(lambda: len(around.log.lines) == 3)
        assert around.log.at("info", "warn") == ["environments have changed", "the configuration is read again"]


async def test_keys_after_a_refusal(tmp_path: Path) -> None:
    """A key that is taken away ends at once, also if it was to be exchanged before and that was refused."""
    async with scene(tmp_path, {"a": {"clientKeys": ["one", "leaked"]}}) as around:
        around.refusal = ExtensionError("no")
        await reload(around, {"a": {"clientKeys": ["new"]}})
        around.refusal = None
        await reload(around, {"a": {"clientKeys": ["one"]}})
        assert accepted(around) == {"a": ("one",)}
