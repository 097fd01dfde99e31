"""The files of the pages: style, scripts, symbols."""

from __future__ import annotations

from flagsvc.pages.headers import FILE_HEADERS
from flagsvc.server.api.authorization import PAGES
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.errors import unknown_path
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.pages.page import FILES


def show_file(call: ApiCall) -> ApiAnswer:
    """Return a file. Raises ApiError (404) for an unknown one, or another version of it."""
    found = FILES.find(call.params["digest"], call.params["name"])
    if found is None:
        raise unknown_path(call.request.path.decode("latin-1"))
    headers = (*FILE_HEADERS, (b"content-type", found.media))
    return ApiAnswer(found.body, headers=headers, gzipped=found.gzipped, tag=found.tag)


ROUTES = (
    Route(
        path=f"{PAGES}/static/:digest/:name",
        handler=show_file,
        operation="pageFile",
        summary="A file of the pages.",
        tag="Pages",
        auth=Auth.NONE,
        in_memory=True,
        listed=False,
    ),
)
