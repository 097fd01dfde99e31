"""The parent's holder and preparer, which pass each step on to all workers."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from flagsvc.core.errors import DocumentError
from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.process.serve_workers import SharedHolder, SharedPreparer
from flagsvc.proxy.configuration import ConfigurationDocument
from flagsvc.proxy.configuration.lifecycle import Event
from flagsvc.proxy.workers.distribution import DocumentDistribution
from support.polling import snapshot_of


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
