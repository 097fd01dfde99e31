"""Public fakes for tests of flagsvc and of what is written for it: a clock, a source, a store, an upstream, a logger."""

from flagsvc.testing.clock import FakeClock, turns
from flagsvc.testing.log import Line, RecordingLog
from flagsvc.testing.sources import FakeSource
from flagsvc.testing.stores import MemoryRecordStore, MemoryStore
from flagsvc.testing.upstream import RecordingUpstream

__all__ = [
    "FakeClock",
    "FakeSource",
    "Line",
    "MemoryRecordStore",
    "MemoryStore",
    "RecordingLog",
    "RecordingUpstream",
    "turns",
]
