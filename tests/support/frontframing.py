"""Odd heads and bodies of requests, and whether they are taken (RFC 9112, 6 and 11.2)."""

from __future__ import annotations

from support.frontkit import KEYED, get, head

HIDDEN = get("/nowhere")
"""What would be answered 404 if it were taken for a request."""
BODY = b"{}" + HIDDEN
CHUNK = b"2\r\n{}\r\n0\r\n\r\n"


def post(*fields: str, version: str = "1.1") -> bytes:
    """Return the head of a POST."""
    return head(f"POST /proxy HTTP/{version}", KEYED, *fields)


def hosted(*hosts: str, version: str = "1.1", line: str = "POST /proxy") -> bytes:
    """Return a POST with a body and these Host lines alone."""
    fields = [f"{line} HTTP/{version}", KEYED, *(f"Host: {host}" for host in hosts), "Content-Length: 2", "", ""]
    return "\r\n".join(fields).encode("latin-1") + b"{}"


def large(*fields: str, filling: int) -> bytes:
    """Return a POST whose head has this many bytes before its last fields."""
    return post(*["X: " + "y" * 4_000] * (filling // 4_000), *fields)


BAD_HOSTS = {
    "no host": hosted(),
    "two hosts": hosted("proxy", "proxy"),
    "two hosts in HTTP/1.0": hosted("proxy", "other", version="1.0"),
    "a host with a path": hosted("proxy/admin"),
    "a host with a user": hosted("user@proxy"),
    "two hosts in one line": hosted("proxy, other"),
    "a host with a blank": hosted("proxy other"),
    "a host that is no text": hosted("pr\xf6xy"),
    "a host with a bad port": hosted("proxy:80a"),
    "a host with two ports": hosted("proxy:80:81"),
    "a host with an open bracket": hosted("[::1"),
    "a target with a host, and no host": hosted(line="POST http://proxy/proxy"),
}
"""Requests without one good Host; they end the connection with a 400."""

REFUSED = {
    **BAD_HOSTS,
    "both a length and chunks": post("Content-Length: 2", "Transfer-Encoding: chunked") + CHUNK,
    "chunks and a length": post("Transfer-Encoding: chunked", "Content-Length: 2") + CHUNK,
    "two lengths": post("Content-Length: 2", "Content-Length: 40") + BODY,
    "two equal lengths": post("Content-Length: 2", "Content-Length: 2") + BODY,
    "a list of lengths": post("Content-Length: 2, 2") + BODY,
    "a length with a sign": post("Content-Length: +2") + BODY,
    "a negative length": post("Content-Length: -2") + BODY,
    "a length in hexadecimal": post("Content-Length: 0x2") + BODY,
    "a length with a blank in it": post("Content-Length: 2 0") + BODY,
    "an endless length": post("Content-Length: " + "9" * 30) + BODY,
    "chunks in HTTP/1.0": post("Transfer-Encoding: chunked", version="1.0") + CHUNK,
    "chunks in HTTP/1.0, kept": post("Connection: keep-alive", "Transfer-Encoding: chunked", version="1.0") + CHUNK,
    "chunked twice": post("Transfer-Encoding: chunked, chunked") + CHUNK,
    "chunked in two lines": post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + CHUNK,
    "a coding before chunks": post("Transfer-Encoding: gzip, chunked") + CHUNK,
    "a coding behind chunks": post("Transfer-Encoding: chunked, identity") + CHUNK,
    "identity in a line before": post("Transfer-Encoding: identity", "Transfer-Encoding: chunked") + CHUNK,
    "identity in a line behind": post("Transfer-Encoding: chunked", "Transfer-Encoding: identity") + CHUNK,
    "another coding": post("Transfer-Encoding: gzip") + BODY,
    "nearly chunked": post("Transfer-Encoding: xchunked") + CHUNK,
    "quoted": post('Transfer-Encoding: "chunked"') + CHUNK,
    "with a parameter": post("Transfer-Encoding: chunked;q=1") + CHUNK,
    "a vertical tab": post("Transfer-Encoding: \x0bchunked") + CHUNK,
    "an empty coding": post("Transfer-Encoding:") + BODY,
    "a blank before the colon": post("Transfer-Encoding : chunked") + CHUNK,
    "a blank before the colon of a length": post("Content-Length : 2") + BODY,
    "a name that is folded": post("Transfer-Encoding\r\n : chunked") + CHUNK,
    "no name": post(": x") + BODY,
    "no colon": post("Transfer-Encoding chunked") + BODY,
    "a bare carriage return": post("X: a\rTransfer-Encoding: chunked") + CHUNK,
    "a bare line feed": head("POST /proxy HTTP/1.1\nTransfer-Encoding: chunked\nX: a", KEYED) + CHUNK,
    "a null": post("X: a\0b", "Content-Length: 2") + BODY,
    "a chunk size with a sign": post("Transfer-Encoding: chunked") + b"+2\r\n{}\r\n0\r\n\r\n",
    "a chunk size in hexadecimal notation": post("Transfer-Encoding: chunked") + b"0x2\r\n{}\r\n0\r\n\r\n",
    "a chunk size with a blank before": post("Transfer-Encoding: chunked") + b" 2\r\n{}\r\n0\r\n\r\n",
    "a chunk size that overflows": post("Transfer-Encoding: chunked") + b"10000000000000002\r\n{}\r\n0\r\n\r\n",
    "a chunk that ends with a line feed": post("Transfer-Encoding: chunked") + b"2\n{}\n0\n\n",
    "a chunk that is longer than it says": post("Transfer-Encoding: chunked") + b"2\r\n{}x\r\n0\r\n\r\n",
    "a line feed in an extension": post("Transfer-Encoding: chunked") + b"2;a\n{}\r\n0\r\n\r\n",
    "a tab behind a coding": post("Transfer-Encoding: chunked\t") + CHUNK,
    "a length behind chunks": post("Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\nContent-Length: 999\r\n\r\n",
    "chunks behind chunks": post("Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.2": b"GET /proxy HTTP/1.2\r\n\r\n",
    "HTTP/3.0": b"GET /proxy HTTP/3.0\r\n\r\n",
    "a blank behind the version": b"GET /proxy HTTP/1.1 \r\nHost: a\r\n\r\n",
    "a tab behind the method": b"GET\t/proxy HTTP/1.1\r\nHost: a\r\n\r\n",
}
"""Heads and bodies that end the connection with a 400."""

TAKEN = {
    "an empty host": hosted(""),
    "a host with a port": hosted("proxy.example:8080"),
    "a host with an underscore": hosted("my_proxy"),
    "an address": hosted("[2001:db8::1]:443"),
    "a host with blanks round it": hosted(" \tproxy \t"),
    "a length": post("Content-Length: 2") + b"{}",
    "a length with noughts": post("Content-Length: 0002") + b"{}",
    "a length with blanks round it": post("Content-Length: \t2 ") + b"{}",
    "chunks": post("Transfer-Encoding: chunked") + CHUNK,
    "chunks in capitals": post("TRANSFER-ENCODING: Chunked") + CHUNK,
    "chunks with blanks round them": post("Transfer-Encoding: \t chunked ") + CHUNK,
    "a blank more before the target": head("POST  /proxy HTTP/1.1", KEYED, "Content-Length: 2") + b"{}",
    "chunks with extensions": post("Transfer-Encoding: chunked") + b"2;a=b\r\n{}\r\n0;c\r\n\r\n",
    "chunks with noughts": post("Transfer-Encoding: chunked") + b"0002\r\n{}\r\n000\r\n\r\n",
    "a key behind chunks": head("POST /proxy HTTP/1.1", KEYED, "Transfer-Encoding: chunked")
    + b"2\r\n{}\r\n0\r\nAuthorization: other\r\n\r\n",
    "an underscore": post("Content_Length: 99", "Transfer_Encoding: chunked", "Content-Length: 2") + b"{}",
    "a body behind a GET": head("GET /proxy HTTP/1.1", KEYED, f"Content-Length: {len(BODY)}") + BODY,
    "a target of another host": head("POST http://other/proxy HTTP/1.1", KEYED, "Content-Length: 2") + b"{}",
    "an upgrade with a body": post("Connection: Upgrade", "Upgrade: h2c", f"Content-Length: {2}") + b"{}",
    "an upgrade with chunks": post("Connection: Upgrade", "Upgrade: h2c", "Transfer-Encoding: chunked") + CHUNK,
    "a WebSocket with a body": post("Connection: upgrade", "Upgrade: websocket", "Content-Length: 10") + b"\r\n\r\n{}\r\n\r\n",
    "an upgrade that comes last": post("Content-Length: 2", "Connection: upgrade", "Upgrade: websocket") + b"{}",
    "an upgrade that nobody asks for": post("Upgrade: websocket", "Content-Length: 2") + b"{}",
}
"""Single requests with a clear end: the bytes after them are the next request."""

TOO_LARGE = {
    f"{name} behind {filling} bytes": large(*fields, filling=filling) + body
    for filling in (20_000, 140_000)
    for name, fields, body in (
        ("a length", [f"Content-Length: {len(BODY)}"], BODY),
        ("chunks", ["Transfer-Encoding: chunked"], CHUNK),
        ("both", ["Transfer-Encoding: chunked", "Content-Length: 2"], CHUNK),
        ("a bad coding", ["Transfer-Encoding: gzip, chunked"], CHUNK),
        ("an upgrade", ["Connection: upgrade", "Upgrade: websocket", f"Content-Length: {len(BODY)}"], BODY),
        ("a second host", ["Host: other"], b""),
    )
}
"""Heads beyond every limit, with what decides where the request ends behind them."""

LAST = {
    "HTTP/0.9": b"GET /proxy/health\r\n\r\n",
    "HTTP/0.9 with a length": b"GET /proxy/health HTTP/0.9\r\nContent-Length: 2\r\n\r\n{}",
    "HTTP/1.0": b"GET /proxy/health HTTP/1.0\r\n\r\n",
    "HTTP/2.0": b"GET /proxy/health HTTP/2.0\r\n\r\n",
    "chunks in HTTP/2.0": b"GET /proxy/health HTTP/2.0\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNK,
}
"""Requests in versions that keep no connection: they are answered, or refused, and nothing behind them is."""
