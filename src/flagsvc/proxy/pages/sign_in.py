"""Signing in with one of adminPageKeys, and out. The session is a random secret in a cookie; the key is kept nowhere."""

from __future__ import annotations

from flagsvc.proxy.pages.access import Access
from flagsvc.proxy.pages.page import FIRST, PageCall, PageRow, Redirect, Shown

TEMPLATE = "sign_in.html"
MAX_BODY = 4096


def sign_in_rows(access: Access) -> tuple[PageRow, ...]:
    """Return the rows of signing in and out."""

    async def show(call: PageCall) -> Shown | Redirect:
        return Redirect(FIRST) if access.is_local else Shown({"problem": ""})

    async def sign_in(call: PageCall) -> Shown | Redirect:
        if access.opens(call.head, call.form.text("key").encode("utf-8", "surrogateescape")):
            return Redirect(FIRST, (access.open_session(),))
        return Shown({"problem": "This is none of adminPageKeys."}, status=403)

    async def sign_out(call: PageCall) -> Redirect:
        return Redirect(FIRST, (access.close_session(call.head),))

    return (
        PageRow("/sign-in", TEMPLATE, show, open=True),
        PageRow("/sign-in", TEMPLATE, sign_in, method=b"POST", open=True, limit=MAX_BODY),
        PageRow("/sign-out", TEMPLATE, sign_out, method=b"POST", open=True, limit=MAX_BODY),
    )
