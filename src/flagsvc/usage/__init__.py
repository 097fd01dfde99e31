"""Usage metrics: `counters` count, `payload` shapes what is sent, `sender` sends it, `spool` keeps in storage what cannot be sent
(as a `record`), `reporter` registers and says when.
"""

from flagsvc.usage.counters import Bucket, Tally, UsageCounters
from flagsvc.usage.reporter import Reporter
from flagsvc.usage.sender import Sink
from flagsvc.usage.spool import Shelf, Spool

__all__ = ["Bucket", "Reporter", "Shelf", "Sink", "Spool", "Tally", "UsageCounters"]
