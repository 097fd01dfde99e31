"""Usage metrics: `counters` count, `payload` shapes what is sent, `sender` sends it, `unsent_usage` keeps in storage what cannot be sent
(as a `record`), `reporter` registers and says when.
"""

from flagsvc.proxy.usage.counters import UsageBucket, UsageCounters
from flagsvc.proxy.usage.reporter import Reporter
from flagsvc.proxy.usage.unsent import RecordStore, UnsentUsage

__all__ = ["RecordStore", "Reporter", "UnsentUsage", "UsageBucket", "UsageCounters"]
