"""The flag server's HTTP contract (dialects: Client API; Admin API).

`FlagServerContract` in `asgi.py` gets a request, and `Pipeline.route` in `pipeline.py` reads its path and routes once into a
`RoutedRequest`, which `check_head`, `admit` and `finish` use. A handler takes an `ApiCall` and returns an `Answer`. It
runs in a thread, unless its row says `in_memory`.

- A refused token, and a permission: each route of `admin/` names its permission; `authorization.py` identifies the caller and asks
  `Actor.may` of `server/store/actors.py`. Where the body decides what is needed, the handler asks. `errors.py` has every form.
- A body that is not JSON: `http/json_text.py` raises, `in_form` in `errors.py` writes the answer.
- An old SDK gets its segments inlined: `read_query` in `client/features.py` asks `knows_segments`.
- The database is away: `pipeline.py` answers 503 where it is needed, and `operations.py` makes `/ready` a 503.
- A change has reached a proxy: `Pollers` in `pollers.py` knows which document each got.
"""
