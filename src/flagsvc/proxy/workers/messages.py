"""The messages between parent and workers: JSON as the head of a frame, raw bytes as its body. Pure.

A `number` identifies a document, a metrics request, a counts request or a reload, so that an answer can be matched to it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from flagsvc.http.metrics import Key
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.usage.record import UsageWindow, to_wire
from flagsvc.proxy.workers.framing import frame

KEPT_DOCUMENTS = 3
"""Documents that may still be switched to: the upstream's, the bootstrap address's, and an unconfirmed empty one."""


class Message(msgspec.Struct, tag=True):
    """The base class of all messages."""


# ---- from the parent


class Welcome(Message):
    """The first message: which worker this is, its options by field, and the groups of listening sockets by file descriptor.

    If `has_configuration` is set, a configuration follows immediately. The worker takes no connection before it has it.
    """

    worker: int
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    sockets: list[list[int]] = msgspec.field(default_factory=list)
    has_configuration: bool = False

    def __repr__(self) -> str:
        """Return a text without the options, which contain secrets."""
        return f"Welcome(worker={self.worker})"


class Prepare(Message):
    """Compile the document in the body, and answer with Prepared."""

    number: int


class Switch(Message):
    """Serve that document from now on, and answer with Switched."""

    number: int


class Checked(Message):
    """The served configuration was current at this moment, in seconds of `Clock.monotonic`, which all processes share."""

    moment: float


class CountsRequest(Message):
    """Send all counts now, and answer with CountsSent."""

    number: int


class MetricsText(Message):
    """The answer to MetricsRequest, with the metrics of all processes in the body."""

    number: int


class Adopt(Message):
    """Also take connections of this group of sockets, because the worker that they belong to has ended."""

    group: int


class Release(Message):
    """Take no more connections of this group of sockets: the worker that they belong to serves again."""

    group: int


class Reload(Message):
    """Use these values of options, by field. Without options, reload files such as certificates. Answer with Reloaded."""

    number: int
    options: dict[str, Any] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        """Return a text without the options, which contain secrets."""
        return f"Reload(number={self.number})"


class Ping(Message):
    """Answer with Pong, to show that the event loop runs."""


class Drain(Message):
    """The proxy is about to end: fail readiness so that callers go elsewhere, but keep answering requests."""


class Leave(Message):
    """Take no more connections, finish open requests, send all counts, and end."""


# ---- from a worker


class Serving(Message):
    """The worker takes connections."""


class Prepared(Message):
    """The document is compiled; `revision` is its revision."""

    number: int
    revision: str


class Switched(Message):
    """The worker serves the document."""

    number: int


class Counts(Message):
    """What was counted since the last message: usage, the growth of counters, and the values of other metrics that changed.

    `usage` has an entry for each source, and `registrations` those of server-side applications, with their sources.
    """

    usage: list[UsageWindow] = msgspec.field(default_factory=list)
    registrations: list[tuple[tuple[str, str], dict[str, Any]]] = msgspec.field(default_factory=list)
    samples: list[tuple[list[str], float]] = msgspec.field(default_factory=list)


class Reloaded(Message):
    """The worker has reloaded."""

    number: int


class CountsSent(Message):
    """The worker has sent everything that was counted before it received CountsRequest."""

    number: int


class Pong(Message):
    """The answer to Ping."""


class MetricsRequest(Message):
    """A client asks this worker for the metrics of all processes."""

    number: int


ParentMessage: TypeAlias = (
    Welcome | Prepare | Switch | Checked | CountsRequest | MetricsText | Adopt | Release | Reload | Ping | Drain | Leave
)
WorkerMessage: TypeAlias = Serving | Prepared | Switched | Reloaded | Counts | CountsSent | Pong | MetricsRequest


def encode_message(message: Message, body: bytes = b"") -> list[bytes]:
    """Return the frame of a message as parts to write one after the other."""
    return frame(msgspec.json.encode(message), body)


def decode_parent_message(head: bytes) -> ParentMessage:
    """Return a message of the parent. Raises msgspec.DecodeError."""
    return msgspec.json.decode(head, type=ParentMessage)  # type: ignore[no-any-return,unused-ignore]


def decode_worker_message(head: bytes) -> WorkerMessage:
    """Return a message of a worker. Raises msgspec.DecodeError."""
    return msgspec.json.decode(head, type=WorkerMessage)  # type: ignore[no-any-return,unused-ignore]


def make_counts(counters: UsageCounters, samples: dict[Key, float]) -> Counts | None:
    """Return the message with what was counted since the last one, and these samples; None if there is nothing."""
    own = counters.drain()
    buckets = [*([] if own is None else [own]), *counters.drain_sources()]
    registrations = counters.take_registrations()
    if not buckets and not registrations and not samples:
        return None
    return Counts(
        [to_wire(bucket) for bucket in buckets],
        [((source.app_name, source.instance_id), body) for source, body in registrations.items()],
        [(list(key), value) for key, value in samples.items()],
    )
