"""The client API, for proxies and server-side SDKs; each module exports `ROUTES`."""
