"""How a configuration arrives and survives a restart.

`lifecycle` is the table that decides, `poller` the loop that acts, and `holder` the one cell that requests read. `sources` and
`stores` implement the ports. `prepare` turns bytes into a snapshot.
"""

from flagsvc.proxy.configuration.holder import ConfigurationDocument, Holder
from flagsvc.proxy.configuration.lifecycle import State
from flagsvc.proxy.configuration.poller import Poller, Source
from flagsvc.proxy.configuration.prepare import Preparer
from flagsvc.proxy.configuration.stores import file_path, is_file_url

__all__ = [
    "ConfigurationDocument",
    "Holder",
    "Poller",
    "Preparer",
    "Source",
    "State",
    "file_path",
    "is_file_url",
]
