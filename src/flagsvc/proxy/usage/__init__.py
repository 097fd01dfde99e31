"""Usage metrics: how often callers asked for each toggle, counted here and reported upstream.

counters    count
payload     the body of a report
sender      sends reports, split where the upstream refuses a large one
unsent      keeps in storage what cannot be sent, each time as one `record`
reporter    registers, and decides when to send
"""

from flagsvc.proxy.usage.counters import UsageBucket, UsageCounters
from flagsvc.proxy.usage.reporter import Reporter
from flagsvc.proxy.usage.unsent import RecordStore, UnsentUsage

__all__ = ["RecordStore", "Reporter", "UnsentUsage", "UsageBucket", "UsageCounters"]
