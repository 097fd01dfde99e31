"""The engine: a pure function of (snapshot, context). It knows no clock, no random source, no environment and no log.

A configuration document is parsed into a model, the model is compiled into immutable nodes and pre-encoded fragments (a
`Snapshot`), and a snapshot answers a `Context` with bytes. Time and the seed of random draws arrive in the context.
"""
