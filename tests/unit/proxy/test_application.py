"""The application's life by hand: starting twice, stopping before the start, starting again."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path

import pytest

import flagsvc
from flagsvc import ExtensionError, ProxyApp, ProxyOptions, create_app


@pytest.fixture
def app(tmp_path: Path) -> ProxyApp:
    """A proxy of a file with one toggle."""
    path = tmp_path / "document.json"
    path.write_text(json.dumps({"features": [{"name": "first", "enabled": True, "strategies": [{"name": "default"}]}]}))
    return create_app(ProxyOptions(flagsvc_url=path.as_uri(), client_keys="key", log_level="fatal"))


async def test_one_life(app: ProxyApp) -> None:
    """Starting twice is starting once; after the end nothing is left; it can be started again."""
    before = asyncio.all_tasks()
    await app.aclose()
    assert asyncio.all_tasks() == before
    await app.start()
    started = asyncio.all_tasks()
    await app.start()
    assert asyncio.all_tasks() == started > before
    await app.ready(20)
    await app.aclose()
    await app.aclose()
    assert asyncio.all_tasks() == before
    async with app:
        await app.ready(20)
        assert asyncio.all_tasks() > before
    assert asyncio.all_tasks() == before
    [notice] = app.greeting()
    assert notice.event.startswith("flagsvc ready: 1 toggle from file:")


async def test_ready_has_a_time_limit(tmp_path: Path) -> None:
    """Without a configuration `ready` raises after the given seconds."""
    missing = create_app(ProxyOptions(flagsvc_url=(tmp_path / "none").as_uri(), client_keys="key", log_level="fatal"))
    async with missing:
        with pytest.raises(TimeoutError):
            await missing.ready(0.05)


def test_other_keys(app: ProxyApp) -> None:
    """They are used at once, before the start also with other flags. What holds for the whole process stays."""

    def opened(**given: str) -> str:
        app.renew(dataclasses.replace(app.options, **given))  # type: ignore[arg-type]
        [environment] = app._runtime.generations
        keys = environment.service.keys.client
        return " ".join(key for key in ("key", "new", "newer") if keys.contains(key.encode()))

    assert opened(client_keys="key,new") == "key new"
    assert opened(client_keys="newer,new", name_prefix="x") == "new newer" and app.options.name_prefix == "x"
    assert opened(client_keys="key,newer", port="1") == "key newer" and app.options.port == 3000


def test_closing_in_another_loop(app: ProxyApp) -> None:
    """What another loop runs is not this loop's to stop."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(app.ready(20))
    asyncio.run(app.aclose())
    assert len(asyncio.all_tasks(loop)) > 0
    loop.run_until_complete(app.aclose())
    assert len(asyncio.all_tasks(loop)) == 0
    loop.close()


def test_moving_to_another_loop_ends_it_in_the_one_before(app: ProxyApp) -> None:
    """However often two loops take turns, it works in at most one loop; one that is closed is no obstacle."""
    loops = [asyncio.new_event_loop() for _ in range(2)]
    for loop in loops * 3:
        loop.run_until_complete(app.ready(20))
    loops[0].run_until_complete(asyncio.wait(asyncio.all_tasks(loops[0]), timeout=20))
    assert len(asyncio.all_tasks(loops[0])) == 0
    assert len(asyncio.all_tasks(loops[1])) > 0
    loops[1].run_until_complete(app.aclose())
    for loop in loops:
        loop.close()
    asyncio.run(app.ready(20))


def test_extensions_are_checked_when_it_is_made() -> None:
    """`create_app` reports a file of strategies that cannot be used, before any request."""
    with pytest.raises(ExtensionError, match="does not exist"):
        create_app(ProxyOptions(flagsvc_url="file:///none", client_keys="key", custom_strategies="none.py"))


def test_every_export_is_there() -> None:
    """Each name that the package promises can be had, is in its home's table once, and has a docstring."""
    listed = sorted(name for names in flagsvc.HOMES.values() for name in names)
    assert sorted([*listed, "__version__"]) == sorted(flagsvc.__all__)
    for name in listed:
        assert getattr(flagsvc, name) is not None
    assert set(flagsvc.__all__) <= set(dir(flagsvc))


def test_an_unknown_export() -> None:
    """A name that is not exported is an AttributeError as of any module."""
    with pytest.raises(AttributeError, match="module `flagsvc` has no attribute `Proxy`"):
        flagsvc.Proxy  # noqa: B018
