"""The start of a worker's process: the same options, no visible secret, and nothing that only this process can use."""

from __future__ import annotations

import json
import signal
import socket
import threading

import pytest

from flagsvc import ConfigurationError
from flagsvc.process.worker_start import BLOCKED_SIGNALS, PARENT_ONLY, block_signals, portable_options, read_portable, start_worker
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.table import BY_NAME
from flagsvc.testing import MemoryStore, RecordingLog
from support.apps_options import options as usual
from support.option_samples import SAMPLES
from support.settings_samples import needed


def carried(options: ProxyOptions) -> ProxyOptions:
    """Return the options as they come out at the other end."""
    return read_portable(json.loads(json.dumps(portable_options(options))))


CARRIED = [name for name in SAMPLES if BY_NAME[name].field not in PARENT_ONLY and not BY_NAME[name].deprecated]


@pytest.mark.parametrize("name", CARRIED)
def test_options_get_there(name: str) -> None:
    """For any value of an option, the worker has the same value. All other options have their defaults."""
    options = usual(**{BY_NAME[each].field: SAMPLES[each][0] for each in (name, *needed(name))})
    assert carried(options) == options


def test_what_only_the_parent_needs() -> None:
    """A storage provider made in code stays here, the storage with its passwords does, and a worker has no workers."""
    storage = {"storage_provider": MemoryStore(), "storage": "redis://:sample-secret@h", "storage_password": "sample-secret"}
    given = portable_options(usual(**storage, workers=2))
    assert "sample-secret" not in repr(given) and "workers" not in given
    assert not [name for name in given if name.startswith("storage")]


@pytest.mark.parametrize(
    ("field", "value"),
    [("logger", RecordingLog()), ("custom_strategies", [object()]), ("exp_custom_enrichers", [lambda context: context])],
)
def test_objects_cannot_be_carried(field: str, value: object) -> None:
    """An object made in code is refused by the name of its option."""
    with pytest.raises(ConfigurationError) as raised:
        portable_options(usual(**{field: value, "workers": 3}))
    [problem] = raised.value.problems
    assert problem == f"{field}: it is an object made in code, which cannot be given to 3 workers"


def test_signals_wait() -> None:
    """A signal that comes while a worker is started is not lost, and has its effect afterwards."""
    got: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
    try:
        with block_signals(BLOCKED_SIGNALS):
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)  # other threads, if any, do not hold it back
            assert got == []
        assert got == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_worker_whose_parent_is_gone() -> None:
    """A process without a parent ends by itself. Its only argument is a number."""
    here, there = socket.socketpair()
    with there, here:
        child = start_worker([], there)
    assert isinstance(child.args, list)
    assert child.args[1:] == ["-P", "-m", "flagsvc.process.worker", child.args[-1]] and child.args[-1].isdigit()
    assert child.wait(20) == 0
