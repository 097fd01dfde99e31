"""The messages between parent and workers, and their frames on a stream of bytes. Pure.

A frame consists of the lengths of head and body, four bytes each, then the head, which is JSON, and the body, which is raw bytes. A
`number` identifies a document, a metrics request, a counts request or a reload, so that an answer can be matched to it.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple, TypeAlias

import msgspec

from flagsvc.http.metrics import Key
from flagsvc.proxy.tokens import Admission
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.usage.unsent import UsageWindow, to_wire

LENGTHS = Struct("!II")
MAX_HEAD = 64 * 1024 * 1024
"""The most bytes of a head. A longer head is an error of the other end."""


class FrameError(ValueError):
    """The bytes are not a frame."""


class Frame(NamedTuple):
    """A frame."""

    head: bytes
    body: bytes


def frame(head: bytes, body: bytes = b"") -> list[bytes]:
    """Return a frame as parts to write one after the other. The body is not copied."""
    start = LENGTHS.pack(len(head), len(body)) + head
    return [start, body] if body else [start]


class Deframer:
    """Turns a stream of bytes, received in pieces of any size, into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed = LENGTHS.size

    def feed(self, data: bytes) -> list[Frame]:
        """Add bytes and return the frames that are complete now. Raises FrameError."""
        self._buffer += data
        found: list[Frame] = []
        while len(self._buffer) >= self._needed and (complete := self._take_frame()) is not None:
            found.append(complete)
        return found

    def _take_frame(self) -> Frame | None:
        """Remove the first frame from the buffer and return it; None if it is not complete yet."""
        head, body = LENGTHS.unpack_from(self._buffer)
        if head > MAX_HEAD:
            raise FrameError(f"a head of {head} bytes")
        middle, end = LENGTHS.size + head, LENGTHS.size + head + body
        if len(self._buffer) < end:
            self._needed = end
            return None
        with memoryview(self._buffer) as view:
            complete = Frame(bytes(view[LENGTHS.size : middle]), bytes(view[middle:end]))
        del self._buffer[:end]
        self._needed = LENGTHS.size
        return complete


KEPT_DOCUMENTS = 3
"""Documents that may still be switched to: the upstream's, the bootstrap address's, and an unconfirmed empty one."""


class Message(msgspec.Struct, tag=True):
    """The base class of all messages."""


# ---- from the parent


class EnvironmentOptions(msgspec.Struct):
    """An environment: the number of the parent's feed, its name, and its options by field.

    If `has_configuration` is set in a Welcome, a configuration follows immediately.
    """

    environment: int
    name: str
    options: dict[str, Any]
    has_configuration: bool = False

    def __repr__(self) -> str:
        """Return a text without the options, which contain secrets."""
        return f"EnvironmentOptions({self.environment}, {self.name!r})"


class Welcome(Message):
    """The first message: which worker this is, its environments, and the groups of listening sockets by file descriptor.

    The worker takes no connection before it has the configurations that follow. `options` are those of the process. `former`
    are environments that answer until the environments of the same names have a configuration. `has_started` tells that each
    environment was tried once.
    """

    worker: int
    environments: list[EnvironmentOptions]
    former: list[EnvironmentOptions] = msgspec.field(default_factory=list)
    sockets: list[list[int]] = msgspec.field(default_factory=list)
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    has_started: bool = False

    def __repr__(self) -> str:
        """Return a text without the options, which contain secrets."""
        return f"Welcome({self.worker}, {self.environments!r}, {self.sockets!r})"


class Prepare(Message):
    """Compile the document in the body, and answer with Prepared."""

    number: int
    environment: int = 0


class Switch(Message):
    """Serve that document from now on, and answer with Switched."""

    number: int
    environment: int = 0


class Checked(Message):
    """The served configuration was current at this moment, in seconds of `Clock.monotonic`, which all processes share."""

    moment: float
    environment: int = 0


class Failed(Message):
    """The first check of the upstream has failed, and there is no configuration."""

    environment: int = 0


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
    """Use these environments. Without any, reload files such as certificates. Answer with Reloaded."""

    number: int
    environments: list[EnvironmentOptions] = msgspec.field(default_factory=list)


class Ping(Message):
    """Answer with Pong, to show that the event loop runs."""


class ValidTokens(Message):
    """Tokens that the upstream knows, by their digests, so that a worker asks about them also while many others wait."""

    digests: list[str]


class TokenAnswer(Message):
    """The answer to TokenQuestion. `opened` is what each token of the question opens; None for a token that opens nothing.

    `retry_s` is the seconds after which to ask again, if that cannot be found out now; else 0.
    """

    number: int
    opened: list[Admission | None] = msgspec.field(default_factory=list)
    retry_s: float = 0.0


class Revoked(Message):
    """The upstream no longer knows this token, or it opens something else now."""

    token: str

    def __repr__(self) -> str:
        """Return a text without the token."""
        return "Revoked()"


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
    environment: int = 0


class Switched(Message):
    """The worker serves the document."""

    number: int
    environment: int = 0


class Counts(Message):
    """What was counted since the last message: usage, the growth of counters, and the values of other metrics that changed.

    `usage` has an entry for each source, and `registrations` those of server-side applications, with their sources. Both are of one
    environment; the other metrics are those of the process.
    """

    environment: int = 0
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
    """A client asks this worker for the metrics of all processes, as OpenMetrics if `is_open`."""

    number: int
    is_open: bool = False


class TokenQuestion(Message):
    """A caller has sent tokens that the worker does not know. `network` is the caller's, in hexadecimal.

    The caller waits for the answer for `seconds`.
    """

    number: int
    tokens: list[str]
    network: str = ""
    seconds: float = 0.0

    def __repr__(self) -> str:
        """Return a text without the token."""
        return f"TokenQuestion({self.number})"


ParentMessage: TypeAlias = (
    Welcome
    | Prepare
    | Switch
    | Checked
    | Failed
    | CountsRequest
    | MetricsText
    | Adopt
    | Release
    | Reload
    | Ping
    | TokenAnswer
    | ValidTokens
    | Revoked
    | Drain
    | Leave
)
WorkerMessage: TypeAlias = Serving | Prepared | Switched | Reloaded | Counts | CountsSent | Pong | MetricsRequest | TokenQuestion


def encode_message(message: Message, body: bytes = b"") -> list[bytes]:
    """Return the frame of a message as parts to write one after the other."""
    return frame(msgspec.json.encode(message), body)


def decode_parent_message(head: bytes) -> ParentMessage:
    """Return a message of the parent. Raises msgspec.DecodeError."""
    return msgspec.json.decode(head, type=ParentMessage)  # type: ignore[no-any-return,unused-ignore]


def decode_worker_message(head: bytes) -> WorkerMessage:
    """Return a message of a worker. Raises msgspec.DecodeError."""
    return msgspec.json.decode(head, type=WorkerMessage)  # type: ignore[no-any-return,unused-ignore]


def make_counts(counters: UsageCounters, samples: dict[Key, float], environment: int = 0) -> Counts | None:
    """Return the message with what an environment has counted since the last one, and these samples; None if there is nothing."""
    own = counters.drain()
    buckets = [*([] if own is None else [own]), *counters.drain_sources()]
    registrations = counters.take_registrations()
    if not buckets and not registrations and not samples:
        return None
    return Counts(
        environment,
        [to_wire(bucket) for bucket in buckets],
        [((source.app_name, source.instance_id), body) for source, body in registrations.items()],
        [(list(key), value) for key, value in samples.items()],
    )
