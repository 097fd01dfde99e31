"""Usage metrics: how often callers asked for each toggle, counted here and reported upstream.

counters    counts for each toggle
impact      impact metrics, which applications measure
sender      makes and sends reports, and splits them if the upstream refuses large ones
unsent      stores counts that cannot be sent, as one `record`
reporter    registers the proxy, and decides when to send
"""

from flagsvc.proxy.usage.counters import UsageBucket, UsageCounters, UsageSource
from flagsvc.proxy.usage.impact import ImpactKey, ImpactSample
from flagsvc.proxy.usage.reporter import Reporter
from flagsvc.proxy.usage.unsent import RecordStore, UnsentUsage

__all__ = [
    "ImpactKey",
    "ImpactSample",
    "RecordStore",
    "Reporter",
    "UnsentUsage",
    "UsageBucket",
    "UsageCounters",
    "UsageSource",
]
