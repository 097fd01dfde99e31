"""The options of a process that runs: how it ends, and what it takes over without a restart
(decision 0031).
"""

from __future__ import annotations

from flagsvc.settings import parse as of
from flagsvc.settings.option import Option, Section

RUNNING: tuple[Option, ...] = (
    Option(
        name="shutdownGrace",
        reads=("FLAGSVC_SHUTDOWN_GRACE",),
        kind=of.integer(0, 3600, "SECONDS"),
        section=Section.LISTENING,
        default=5,
        help="seconds that requests are still answered after SIGTERM, while readiness fails and load balancers look elsewhere;"
        " make it longer than they take to notice",
    ),
    Option(
        name="watchInterval",
        reads=("FLAGSVC_WATCH_INTERVAL",),
        kind=of.integer(0, 86_400, "SECONDS"),
        section=Section.CALLERS,
        default=2,
        help="seconds between two looks whether the configuration file, a file of secrets or a certificate of ours has changed;"
        " 0 never looks, and SIGHUP has all read again",
    ),
    Option(
        name="keyOverlap",
        reads=("FLAGSVC_KEY_OVERLAP",),
        kind=of.integer(0, 86_400, "SECONDS"),
        section=Section.CALLERS,
        default=60,
        help="seconds that a client key or token goes on opening after others took its place in a running proxy; one that is"
        " only taken away ends at once",
    ),
)
