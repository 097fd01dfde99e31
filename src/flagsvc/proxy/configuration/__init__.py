"""How a configuration arrives and survives a restart.

`lifecycle` is the table that decides, `poller` the loop that acts, and `holder` the one cell that requests read. `sources` and
`stores` implement the ports. `prepare` turns bytes into a snapshot. `follower` keeps a stream open that tells when to poll.

- The upstream goes away, or answers 304, 401 or nonsense: `Upstream.get_features` makes a document or an error of the answer,
  `classify_error` an event of that, and `TABLE` in `lifecycle.py` says what follows. The last snapshot is served meanwhile.
- A restart: `DocumentStorage` in `stores.py` writes the document in the background to a `StorageProvider`, which is a `FileStore`
  or a `RedisStore`. When Redis goes away, it logs that once and tries again after the next poll. Requests do not use Redis.
- Malformed flags: `Poller` logs the first 20 of each kind, and `flagsvc_config_problems` counts them.
- A change arrives late: `StreamNotes` tells whether the stream is open, and why not; the status page and the metrics show it.
- The status page reads since when, why not and when again from `PollNotes`, which `Poller` writes.
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
