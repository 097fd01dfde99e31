"""How a configuration arrives and survives.

`lifecycle` is the table that decides, `poller` the loop that acts, `holder` the one cell that requests read; `sources` and
`stores` are the ports' implementations, `prepare` the way from bytes to a snapshot.
"""

from flagsvc.repository.holder import ConfigurationDocument, Holder
from flagsvc.repository.lifecycle import State
from flagsvc.repository.locations import file_path, is_file_url
from flagsvc.repository.poller import Poller
from flagsvc.repository.ports import Compile, Source
from flagsvc.repository.prepare import Preparer

__all__ = [
    "Compile",
    "ConfigurationDocument",
    "Holder",
    "Poller",
    "Preparer",
    "Source",
    "State",
    "file_path",
    "is_file_url",
]
