"""The HTTP contract, the same for every transport: request → checks → port call → response.

    service.py      the one place: `check_head` makes every check on the head, `answer` does the rest
    dialects.py     the routes, one row each; openapi.py and build.py read them

This package knows statuses, headers and bodies. It refuses to know sockets, the upstream server and how a toggle is decided.

- The routes: `dialects.py` has the routes of each API, `operations.py` has the rest.
- What OpenFeature providers get for a flag: `ofrep.py`, as other forms of the bytes of `/proxy`.
- A page hears of a change: `Holder.replace` tells the `Hints` of each service in `streams.py`, which announce the version.
  `stream_routes.py` opens streams, and serves the module for pages. Services hear what has changed: `deltas.py`.
- Which environment answers: `Router.check_head` in `router.py` looks the key up in its `KeyTable`, and passes the request on to the
  `Service` of that environment, else to that of the process. `Entrance` says which generation answers.
- A refused key: `Service.check` calls `KeyCheck.find_key` of `http/keys.py`, which raises the 401 or 403; with rate limits
  by way of `rate.py`. `error_body` of the `WireFormat` writes the body, below `/api` that of `RealServerFormat`. A
  body that is not JSON takes the same way from `http/json_text.py`.
- A token that no option lists: `Router.answer_later` asks for it, and refuses it if it opens nothing (see flagsvc.proxy.tokens).
  A token of some projects sees the part of the snapshot that a `ScopedHolder` of `scopes.py` keeps.
- A context is read: `WireFormat` in `wire_format.py`, over `query.py` and `body.py`. Its bounds are `ContextLimits` of `query.py`.
- A body that is too large (413): `Service.check_body`.
- CORS: `Cors` in `answers.py`; `Service.preflight` answers OPTIONS.
- The tag of an answer, and a 304: `evaluation.py`, with the key of `engine/canonical.py`. An answer that depends on chance or time
  gets a hash of its body, in `answers.py`.
- An old SDK gets its segments inlined: `ClientFeatures.read_filter` in `server_side.py`, `client_documents.py`.
- Custom code raises: `Evaluator.log_faults` logs a strategy once. `Enrichment.apply` in `enrich.py` answers 500 for an enricher, or
  goes on without it (`enricherFailure`).
"""
