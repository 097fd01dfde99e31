"""A client of one flag server's admin API. Every failure raises an `AdminApiError` with a message for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import count
from typing import TYPE_CHECKING, Any, Self, TypeGuard
from urllib.parse import quote, urlencode

from flagsvc.cli.batch.server_errors import AdminApiError, Reply, read_error
from flagsvc.cli.batch.target import Target
from flagsvc.core.errors import UnreachableError, UpstreamError
from flagsvc.settings.kinds import printable

if TYPE_CHECKING:
    from flagsvc.cli.client import Client

BATCH = "/api/admin/features-batch"
PAGE_SIZE = 100
"""Flags of one page of a search, the most that a server gives."""
LISTS = {
    "project": ("/api/admin/projects", "projects", "id"),
    "environment": ("/api/admin/environments", "environments", "name"),
}
"""Kind of object → the path of the server's list, its key in the answer, and the field with the name."""


class AdminClient:
    """A session with a flag server's admin API. It reads no environment variables and follows no redirects."""

    def __init__(self, target: Target) -> None:
        """Prepare a session; it opens no connection yet. Raises AdminApiError for an invalid host, and ConfigurationError."""
        self.target = target
        self._headers = [("authorization", target.token.encode("ascii"))] if target.token else []
        self._client = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._client.close()

    def validate(self, request: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Return the three lists of a validation (import validation 4). Raises AdminApiError."""
        reply = self._post(f"{BATCH}/validate", request)
        value = reply.value
        if not isinstance(value, dict) or "errors" not in value:
            raise self.not_a_flag_server()
        lists = {name: value.get(name, []) for name in ("errors", "warnings", "permissions")}
        if not all(is_list_of_items(found) for found in lists.values()):
            raise self.not_a_flag_server()
        return lists

    def import_(self, request: Mapping[str, Any]) -> None:
        """Import (import validation 6). Raises AdminApiError; its kind is `unclear` if the import may have succeeded."""
        self._post(f"{BATCH}/import", request)

    def try_import(self, request: Mapping[str, Any]) -> bool:
        """Return True if the server tried an import with success; False if it cannot try: of the family only ours can.

        Raises AdminApiError with the import's own error.
        """
        reply = self._request("POST", f"{BATCH}/import/dry-run", encode_json(request))
        if reply.status == 405 or (reply.status == 404 and reply.is_wrong_address):
            return False
        if reply.status == 200:
            return True
        raise self._read_error(reply)

    def export(self, query: Mapping[str, Any]) -> dict[str, Any]:
        """Return a data set (import validation 7). Raises AdminApiError."""
        value = self._post(f"{BATCH}/export", query).value
        if not isinstance(value, dict) or not is_list_of_objects(value.get("featureStrategies") or []):
            raise self.not_a_flag_server()
        flags = value.get("features")
        if not is_list_of_objects(flags) or not all(isinstance(flag.get("name"), str) for flag in flags):
            raise self.not_a_flag_server()
        return value

    def value(self, path: str) -> Any:
        """Return the value at a path of the admin API; None if the server or the token does not allow it."""
        reply = self._request("GET", path)
        return reply.value if reply.status == 200 else None

    def names(self, path: str, key: str, name: str) -> set[str] | None:
        """Return the names in a list of the admin API; None if the server or the token does not allow it."""
        value = self.value(path)
        rows = value.get(key) if isinstance(value, dict) else value
        if not isinstance(rows, list) or not all(isinstance(row, dict) and name in row for row in rows):
            return None
        return {str(row[name]) for row in rows}

    def check_exists(self, **named: str) -> None:
        """Raise AdminApiError if the server lists its projects or environments, and a given name is not among them.

        The real server answers for an unknown one as for an empty one, which would hide a typing error.
        """
        for kind, name in named.items():
            known = self.names(*LISTS[kind])
            if known is not None and name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(sorted(known)) or 'none'}"
                server = f"`{self.target.shown}`" if self.target.side.word else "the server"
                text = f"{server} has no {kind} `{printable(name)}`; {printable(hint, 200)}"
                raise AdminApiError("not-found", text, status=404)

    def is_admin_token(self) -> bool:
        """Return whether the token is an admin token, which belongs to no user and cannot import (import validation 6)."""
        user = self._request("GET", "/api/admin/user").error.get("user")
        if isinstance(user, dict) and ("type" in user or "id" in user):
            return user.get("type") == "admin"
        return re.fullmatch(r"(?!user:)[^:]*:[^.]*\..+", re.sub(r"(?i)^bearer\s+", "", self.target.token)) is not None

    def send(self, method: str, path: str, value: object = None) -> Any:
        """Send a request and return the JSON value of its answer. Raises AdminApiError for any status but success."""
        reply = self._request(method, path, None if value is None else encode_json(value))
        if 200 <= reply.status < 300:
            return reply.value
        raise self._read_error(reply)

    def rows(self, path: str, key: str) -> list[dict[str, Any]]:
        """Return a list of the admin API, which is the answer or a member of it. Raises AdminApiError."""
        value = self.send("GET", path)
        rows = value.get(key) if isinstance(value, dict) else value
        if not is_list_of_objects(rows):
            raise self.not_a_flag_server()
        return rows

    def search_flags(self, **filters: str) -> Iterator[dict[str, Any]]:
        """Yield the flags that a search finds, by name, page after page. Raises AdminApiError."""
        for number in count():
            page = {"sortBy": "name", "sortOrder": "asc", "limit": PAGE_SIZE, "offset": number * PAGE_SIZE}
            found = self.rows(f"/api/admin/search/features?{urlencode(filters | page)}", "features")
            yield from found
            if len(found) < PAGE_SIZE:
                return

    def takes_post(self, path: str, value: object) -> bool:
        """Return whether the server has an operation, by a POST that changes nothing."""
        return self._request("POST", path, encode_json(value)).status not in (404, 405)

    def _post(self, path: str, value: Mapping[str, Any]) -> Reply:
        reply = self._request("POST", path, encode_json(value))
        if reply.status == 200:
            return reply
        raise self._read_error(reply)

    def _request(self, method: str, path: str, content: bytes | None = None) -> Reply:
        more = [] if content is None else [("content-type", b"application/json")]
        try:
            answer = self._client.send(method, self.target.url + path, [*self._headers, *more], content)
        except UpstreamError as error:
            raise self._unanswered(error) from None
        return Reply(answer.status, answer.body, path, len(content or b""), answer.headers.get("location", ""))

    def _open(self) -> Client:
        from flagsvc.cli.client import Client
        from flagsvc.http.client.trust import Trust

        target = self.target
        try:
            return Client(target.url, target.outbound, target.trust or Trust(), target.seconds)
        except UpstreamError as error:
            raise self._unanswered(error) from None

    def _unanswered(self, error: UpstreamError) -> AdminApiError:
        """Return the error for a request without an answer."""
        from flagsvc.cli.client import explain_failure

        reason = explain_failure(error)
        untrusted = "certificate verify failed" in reason
        hint = f"; {self.target.side.option('ca-file')} names an authority to trust" if untrusted else ""
        return AdminApiError("network" if isinstance(error, UnreachableError) else "unclear", f"{reason}{hint}")

    def _read_error(self, reply: Reply) -> AdminApiError:
        return read_error(reply, self.target.shown, token=bool(self.target.token), side=self.target.side)

    def not_a_flag_server(self) -> AdminApiError:
        """Return the error for an answer of another form than that of a flag server."""
        text = f"`{self.target.shown}` answers, but not as a flag server does: check {self.target.side.address}"
        return AdminApiError("no-flag-server", text, status=200)


def is_list_of_objects(value: object) -> TypeGuard[list[dict[str, Any]]]:
    """Return whether a JSON value is a list of objects."""
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def is_list_of_items(value: object) -> bool:
    """Return whether a JSON value is a list of `{message, affectedItems}` (import validation 4)."""
    return isinstance(value, list) and all(
        isinstance(item, dict) and isinstance(item.get("message"), str) and isinstance(item.get("affectedItems"), list)
        for item in value
    )


def quote_path_part(text: str) -> str:
    """Return a name as a part of a path; half of a surrogate pair, which a path cannot contain, becomes a question mark."""
    return quote(text, safe="", errors="replace")


def feature_path(project: object, name: object) -> str:
    """Return the path of a flag in the admin API."""
    return f"/api/admin/projects/{quote_path_part(str(project))}/features/{quote_path_part(str(name))}"


def encode_json(value: object) -> bytes:
    """Return compact JSON in UTF-8; if the value has half of a surrogate pair, which UTF-8 cannot encode, use escapes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
