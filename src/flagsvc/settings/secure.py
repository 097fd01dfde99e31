"""The options of TLS, of Unix sockets and of the operators' address (behaviour: Further options; decision 0033)."""

from __future__ import annotations

from flagsvc.settings import network as net
from flagsvc.settings import parse as of
from flagsvc.settings.option import Option, Section

PATH = of.TEXT._replace(expects="the path of a file", metavar="FILE", beside=of.path_in)
PASSWORD = of.secret(of.TEXT._replace(metavar="PASSWORD"))
TLS_VERSION = of.choice(("1.2", "1.3"), {"tls1.2": "1.2", "tlsv1.2": "1.2", "tls1.3": "1.3", "tlsv1.3": "1.3"})

SERVING: tuple[Option, ...] = (
    Option(
        name="tlsCert",
        reads=("FLAGSVC_TLS_CERT",),
        kind=PATH,
        section=Section.LISTENING,
        help="certificate with its chain, PEM, to speak HTTPS with; read anew when the file changes",
    ),
    Option(
        name="tlsKey",
        reads=("FLAGSVC_TLS_KEY",),
        kind=PATH,
        section=Section.LISTENING,
        default_text="in the certificate's file",
        needs="tlsCert",
        help="key of the certificate, PEM",
    ),
    Option(
        name="tlsKeyPassword",
        reads=("FLAGSVC_TLS_KEY_PASSWORD",),
        kind=PASSWORD,
        section=Section.LISTENING,
        secret=True,
        needs="tlsCert",
        help="password of the key, where it is encrypted",
    ),
    Option(
        name="tlsMinVersion",
        reads=("FLAGSVC_TLS_MIN_VERSION",),
        kind=TLS_VERSION,
        section=Section.LISTENING,
        default="1.2",
        help="lowest version of TLS that callers may speak",
    ),
    Option(
        name="tlsClientCa",
        reads=("FLAGSVC_TLS_CLIENT_CA",),
        kind=PATH,
        section=Section.LISTENING,
        needs="tlsCert",
        help="authorities, PEM, of which every caller must show a certificate (mutual TLS)",
    ),
    Option(
        name="tlsHandshakeTimeout",
        reads=("FLAGSVC_TLS_HANDSHAKE_TIMEOUT",),
        kind=of.SECONDS,
        section=Section.LISTENING,
        default=10,
        help="seconds after which a connection is closed whose TLS handshake is not done",
        stops="opening connections and not shaking hands",
    ),
    Option(
        name="socketMode",
        reads=("FLAGSVC_SOCKET_MODE",),
        kind=net.FILE_MODE,
        section=Section.LISTENING,
        default="0660",
        help="mode of the files of Unix sockets: who may connect",
    ),
)
"""What both programs take that listen."""

SECURE: tuple[Option, ...] = (
    *SERVING,
    Option(
        name="adminAddress",
        reads=("FLAGSVC_ADMIN_ADDRESS",),
        kind=net.ADDRESS,
        section=Section.LISTENING,
        help="a second address, plain HTTP, for health and metrics; metrics are then answered there alone, also before the"
        " first configuration",
    ),
    Option(
        name="upstreamCa",
        reads=("FLAGSVC_UPSTREAM_CA",),
        kind=PATH,
        section=Section.UPSTREAM,
        help="authorities, PEM, to trust beside the system's; read anew when the file changes",
    ),
    Option(
        name="upstreamCert",
        reads=("FLAGSVC_UPSTREAM_CERT",),
        kind=PATH,
        section=Section.UPSTREAM,
        help="certificate, PEM, to show to the upstream server (mutual TLS); read anew when the file changes",
    ),
    Option(
        name="upstreamKey",
        reads=("FLAGSVC_UPSTREAM_KEY",),
        kind=PATH,
        section=Section.UPSTREAM,
        default_text="in the certificate's file",
        needs="upstreamCert",
        help="key of that certificate, PEM",
    ),
    Option(
        name="upstreamKeyPassword",
        reads=("FLAGSVC_UPSTREAM_KEY_PASSWORD",),
        kind=PASSWORD,
        section=Section.UPSTREAM,
        secret=True,
        needs="upstreamCert",
        help="password of that key, where it is encrypted",
    ),
)
"""What the proxy takes."""
