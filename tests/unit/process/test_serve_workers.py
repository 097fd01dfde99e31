"""The parent of several workers: a reload that it refuses, tokens that it knows, configurations, and metrics of all processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from time import time
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from flagsvc.core.errors import ConfigurationError, DocumentError
from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.process.serve_workers import ParentProcess, SharedHolder, SharedPreparer, collect_process_metrics, measure_process
from flagsvc.proxy.configuration import ConfigurationDocument
from flagsvc.proxy.configuration.lifecycle import Event
from flagsvc.proxy.configuration.stores import NoStore
from flagsvc.proxy.generations.setup import make_setup
from flagsvc.proxy.tokens import Admission, TokenBook, TokenGrant, TokenScope
from flagsvc.proxy.tokens.book import digest_of
from flagsvc.proxy.workers.distribution import DocumentDistribution
from flagsvc.proxy.workers.pool import WorkerPool
from flagsvc.settings.options import ProxyOptions
from support.aio import until
from support.lookup_scene import MemoryTokens
from support.needs import missing
from support.polling import snapshot_of


def options(**given: dict[str, Any]) -> ProxyOptions:
    """Return options of these environments, each with a key of its name unless it is given others."""
    environments = {name: {"client_keys": f"key-{name}", "flagsvc_api_token": "t", **each} for name, each in given.items()}
    return ProxyOptions(
        flagsvc_url="http://127.0.0.1:1/api", workers=2, storage="none", log_level="fatal", environments=environments
    )


async def test_an_environment_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent keeps its options and keys, tells the workers nothing, and forgets what it has made for the reload."""
    before = make_setup(options(a={}))
    parent = ParentProcess(before, [], None)
    parent.generations.start()
    pool = parent.worker_pool
    told, forget = Mock(), Mock(wraps=pool.forget_feed)
    monkeypatch.setattr(pool, "use_environments", told)
    monkeypatch.setattr(pool, "forget_feed", forget)

    def store(given: ProxyOptions) -> NoStore:
        if given.refresh_interval == 1:
            raise ConfigurationError(["no storage"])
        return NoStore()

    monkeypatch.setattr("flagsvc.proxy.generations.feeds.make_storage", store)
    with pytest.raises(ConfigurationError, match="no storage"):
        await parent.apply_options(options(a={"client_keys": "new"}, b={}, c={"refresh_interval": 1}))
    assert parent.generations.setup is before and not told.called
    assert [each.setup for each in parent.generations] == list(before.environments)
    await parent.generations.stop()
    assert sorted(each.args[0] for each in forget.call_args_list) == [0, 1, 2]


async def test_all_workers_learn_of_a_valid_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other workers know the token before its caller has the answer, so that no flood at them keeps the token out."""
    parent = ParentProcess(make_setup(options(a={})), [], None)
    told: list[Sequence[str]] = []
    opened = {"known": Admission(0, False, TokenScope("e", None), True)}
    monkeypatch.setattr(parent, "directory", Mock(look_up_all=AsyncMock(return_value=opened)))
    monkeypatch.setattr(parent.worker_pool, "tell_valid_tokens", told.append)
    assert list(await parent.look_up_tokens(["known", "unknown"], b"", 5.0)) == ["known"]
    assert told == [[digest_of("known")]]


async def test_all_workers_learn_of_stored_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are told when storage has been read, which may be after the workers have started."""
    book = TokenBook()
    book.add("known", TokenGrant(False, TokenScope("e", None)), time())
    stored = MemoryTokens(b"".join(book.pack()))
    told: list[Sequence[str]] = []
    monkeypatch.setattr("flagsvc.proxy.generations.lookups.make_token_store", lambda setup: stored)
    monkeypatch.setattr(WorkerPool, "tell_valid_tokens", lambda pool, digests: told.append(digests))
    parent = ParentProcess(make_setup(options(a={"token_validation": "upstream"})), [], None)
    parent.generations.start()
    await until(lambda: told == [[digest_of("known")]])
    await parent.generations.stop()


async def test_a_bad_document_goes_nowhere() -> None:
    """A document that cannot be compiled here is sent to no worker."""
    distribution = Mock(DocumentDistribution)
    with pytest.raises(DocumentError):
        await SharedPreparer(Compiler(CompileOptions()), None, distribution)(b"no document", None)
    assert not distribution.prepare.called


def test_the_first_failure_is_told_everywhere() -> None:
    """Workers learn that the start has gone wrong: once, and only while there is no configuration."""
    distribution, holder = Mock(DocumentDistribution), SharedHolder()
    holder.record_check(Event.FAILED, 1)
    assert (holder.failures, distribution.report_failure.call_count) == (1, 0)
    for failures in (1, 2, 0):
        holder.distribution = distribution
        holder.record_check(Event.FAILED, failures)
    assert (holder.failures, distribution.report_failure.call_count) == (0, 1)
    holder.replace(snapshot_of(), ConfigurationDocument(b"{}", '"tag"'), 0)
    holder.record_check(Event.FAILED, 1)
    assert distribution.report_failure.call_count == 1


def values(*pids: int) -> dict[str, float]:
    return {metric.name: metric.samples[0].value for metric in collect_process_metrics(pids)}


def test_metrics_of_processes() -> None:
    """Those of a worker are added, but the start is the parent's. The CPU time of an ended worker stays; nothing else does."""
    if not list(measure_process("self")):
        missing("this system has no /proc")
    alone = values()
    with subprocess.Popen([sys.executable, "-c", "input(); sum(range(3_000_000))"], stdin=subprocess.PIPE) as child:
        both = values(child.pid)
        assert both["process_virtual_memory_bytes"] > alone["process_virtual_memory_bytes"]
        assert both["process_max_fds"] > alone["process_max_fds"]
        assert both["process_start_time_seconds"] == alone["process_start_time_seconds"]
        child.communicate(b"\n")
    after = values(child.pid)
    assert after["process_cpu_seconds"] > alone["process_cpu_seconds"] and after["process_max_fds"] == alone["process_max_fds"]
