"""Usage metrics: how often callers asked for each toggle, counted here and reported upstream.

counters    counts for each toggle; `UsageSource` is the name under which they go upstream: the proxy, or an application
impact      impact metrics, which applications measure: their bounds and sums; `proxy/api/impact.py` reads them
unsent      stores counts that cannot be sent, as one `record`
reporter    registers the proxy, decides when to send and to store, and splits reports if the upstream refuses large ones

Unsent counts have no time limit. `UsageCounters` has the bound on their size. A kill loses what is not stored yet (decision 0017).
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
