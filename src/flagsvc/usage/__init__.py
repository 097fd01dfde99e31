"""Usage metrics: `counters` count, `payload` shapes what is sent, `reporter` registers and sends."""

from flagsvc.usage.counters import Bucket, Tally, UsageCounters
from flagsvc.usage.reporter import Reporter, Sink

__all__ = ["Bucket", "Reporter", "Sink", "Tally", "UsageCounters"]
