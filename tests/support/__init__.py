"""Helpers of all tests: which helper to take for what. A helper that one folder of tests uses lies in that folder.

Waiting, programs, data

- `waiting`: wait for a condition, and run threads beside a block; `aio`: asynchronous tests, and waiting in an event loop
- `needs`: a program that a test needs; without it the test skips, or fails under REQUIRE_ALL=1
- `processes`: ports, programs, an HTTP request, a call of `flagsvc`; our proxy, the reference, PostgreSQL, the real flag server
- `peers`: npm packages; `javascript`: a JavaScript function over many values
- `databases`: fixtures for SQLite and PostgreSQL; `redises`: a Redis server; `balancers`: HAProxy and nginx; `pki`: certificates
- `notified`: the socket of a service manager
- `guides`: commands of the how-to pages
- `statements`: what modules of the repository import
- `forms`, `covering`, `coverage_floors`: compiled modules or sources, and branch coverage; `same_inputs`: how many inputs

Servers that a test controls

- `http_servers`: a function that answers, in a thread; the ground of the next ones
- `collector`: a collector of OpenTelemetry, which can refuse and keep callers waiting
- `fake_upstream`: a flag server for proxies; `fake_admin`: the admin API for commands; `receivers`: webhooks
- `loopback`: any bytes, slow or cut off, in the event loop; `upstream_faults`: all faults of an upstream for it
- `wiretap`: a relay that records bytes, and searches for secrets

The proxy

- `evaluating`: features, constraints and their evaluation, without a proxy; `whole`: whole explanations
- `serving`: a service over a fake snapshot; `wirekit`: the wire over the real engine, by ASGI and by our HTTP server
- `frontkit`: a connection of our HTTP server in memory; `frontframing`, `smuggling`: odd heads and bodies
- `scene`: an application with upstream, folder, log and clock in one loop; `token_scene`: the same for looked-up tokens
- `apps_options`, `settings_samples`, `environment_samples`, `option_samples`: options
- `environments`: the inside of a runtime; `desk_scene`: the operators' pages; `class_ways`: classes of contexts forced on or off
- `streams`: a flag server with streams, and a poller that follows it
- `polling`: a poller; `lookup_scene`: a look-up of tokens; `upstream_session`: a client of an upstream; `plain_store`: a storage
- `event_streams`: a caller with an open stream, and how many streams a proxy has
- `worker_pools`: a process with workers, and callers; `outages`: workers that fall
- `deltas`: a caller of delta and streaming
- `tagged`: generated configurations and requests; `tracebacks`: what an error report shows

The flag server

- `flagservers`: `app_client` in this process, `our_flag_server` as a process; `planting`: a seed without events
- `stored_flags`: a database with flags, without HTTP; `batch_scene`: imports and exports; `backups`: backups
- `server_pair`, `admin_calls`: the same calls to ours and the real server; `import_cases`: its recorded answers
- `batch_trouble`, `shape_bodies`: generated data sets and bodies; `state_exports`: exports of old servers
- `page_forms`: pages and forms, with a session or a token; `provider`: OpenID, and signing in there
- `browser`: Chromium, and what is wrong with a page in it; `person`: a person in it, and signing in
- `moments`: times in words

Commands and benchmarks

- `cli_helpers`: a command in this process; `cli_peers`: commands as processes on ours and the real server
- `bench_scene`: the load generator, and invented results
"""
