"""The HTTP contract, the same for every transport: request → checks → port call → response.

    service.py      the one place: `check_head` makes every check on the head, `answer` does the rest
    dialects.py     the routes, one row each; openapi.py and build.py read them

This package knows statuses, headers and bodies. It refuses to know sockets, the upstream server and how a toggle is decided.
"""
