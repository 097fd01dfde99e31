"""Usage metrics: `counters` count, `payload` shapes what is sent, `sender` sends it, `spool` keeps in storage what cannot be sent
(as a `record`), `reporter` registers and says when.
"""

from flagsvc.usage.counters import Bucket, UsageCounters
from flagsvc.usage.reporter import Reporter
from flagsvc.usage.spool import Shelf, Spool

__all__ = ["Bucket", "Reporter", "Shelf", "Spool", "UsageCounters"]
