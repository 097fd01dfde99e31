"""What a service manager is told: nothing without a socket, and signs of life only while the loop turns."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from flagsvc.process.service_manager import LISTENING, SERVING, STOPPING, ServiceManager
from support.aio import until
from support.notified import NotifySocket, notify_socket


def manager(told: NotifySocket, **more: str) -> ServiceManager:
    """Return the service manager behind a socket."""
    return ServiceManager({"NOTIFY_SOCKET": told.address, **more})


def test_children_do_not_get_the_variables() -> None:
    """The variables are gone from the environment, and everything else stays."""
    variables = {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "7", "WATCHDOG_PID": "8", "PATH": "/bin"}
    ServiceManager(variables)
    assert variables == {"PATH": "/bin"}


async def test_the_life_of_a_process(tmp_path: Path) -> None:
    """The process is ready when it listens. A reload ends when its futures are done, also if a future failed."""
    with notify_socket(tmp_path) as told:
        told_to = manager(told)
        told_to.reload([lambda: None])
        assert told.messages() == [], "a process that does not listen yet is not ready after a reload"
        told_to.tell_listening()
        assert told.messages() == [{"READY": "1", "STATUS": LISTENING}]
        told_to.tell_serving()
        told_to.tell_serving()
        assert told.said() == ["READY", "STATUS"] and told.status == SERVING
        futures = [asyncio.get_running_loop().create_future() for _ in range(2)]
        told_to.reload([lambda: futures[0], lambda: futures[1], lambda: True])
        futures[0].set_result(None)
        await asyncio.sleep(0)
        assert told.said()[2:] == ["RELOADING"] and told.messages()[-1]["MONOTONIC_USEC"].isdecimal()
        futures[1].set_exception(ValueError())
        await until(lambda: told.said()[2:] == ["RELOADING", "READY"])
        assert told.status == SERVING
        told_to.reload([])
        await until(lambda: told.said()[4:] == ["RELOADING", "READY"])
        told_to.tell_stopping()
        told_to.reload([])
        assert told.messages()[-1] == {"STOPPING": "1", "STATUS": STOPPING}


def test_a_reload_that_outlives_the_service(tmp_path: Path) -> None:
    """A process that has begun to stop is not ready again, even if a reload ends."""

    async def live(told: NotifySocket) -> None:
        told_to, future = manager(told), asyncio.get_running_loop().create_future()
        told_to.tell_listening()
        told_to.reload([lambda: future])
        told_to.tell_stopping()
        future.set_result(None)
        for _ in range(5):
            await asyncio.sleep(0)
        assert told.said() == ["READY", "RELOADING", "STOPPING"]

    with notify_socket(tmp_path) as told:
        asyncio.run(live(told))


def test_an_abstract_socket() -> None:
    """An address with `@` is a socket without a file."""
    told = NotifySocket(f"@flagsvc-test-{os.getpid()}")
    with told.sock:
        manager(told).tell_listening()
        assert told.said() == ["READY"]


@pytest.mark.parametrize("place", ["/nowhere/notify", "x" * 300, "vsock:2:1234", ""])
def test_no_service_manager(place: str) -> None:
    """Without a socket that takes messages, nothing happens."""
    ServiceManager({"NOTIFY_SOCKET": place}).tell_listening()


def test_a_full_socket(tmp_path: Path) -> None:
    """A service manager that reads nothing holds nothing up."""
    with notify_socket(tmp_path) as told:
        told_to = manager(told)
        for _ in range(2000):
            told_to.tell_stopping()
        assert 0 < len(told.messages()) < 2000


@pytest.mark.parametrize("process", [{}, {"WATCHDOG_PID": str(os.getpid())}])
async def test_the_watchdog_hears_the_loop(tmp_path: Path, process: dict[str, str]) -> None:
    """Signs of life come while the loop turns, none while it is blocked, and none after the end."""
    tasks = asyncio.all_tasks()
    with notify_socket(tmp_path) as told:
        async with manager(told, WATCHDOG_USEC="20000", **process) as told_to:
            told_to.tell_listening()
            await until(lambda: told.messages()[2:])
            assert told.messages()[1:3] == [{"WATCHDOG": "1"}] * 2
            told.sock.settimeout(0.3)
            with pytest.raises(TimeoutError):
                told.sock.recv(100)  # which blocks the loop for 15 times its interval
            before = len(told.messages())
            await until(lambda: told.messages()[before + 1 :])
        assert asyncio.all_tasks() == tasks


@pytest.mark.parametrize("variables", [{}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"}])
async def test_no_watchdog(tmp_path: Path, variables: dict[str, str]) -> None:
    """Without an interval, or with that of another process, there are no signs of life."""
    tasks = asyncio.all_tasks()
    with notify_socket(tmp_path) as told:
        async with manager(told, **variables):
            assert asyncio.all_tasks() == tasks and told.messages() == []
