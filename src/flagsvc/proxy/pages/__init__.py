"""The proxy's pages for operators, at `adminAddress` below /ui. They change nothing.

`desk` is the contract: which request is for a page, who may see it, and the answer. `rows` has the pages. All of it runs in the
event loop that answers callers, in slices of half a millisecond (`Slices`): compiled code does not release the interpreter's lock,
so a thread would make callers wait longer, and custom code is called in the thread that it knows.
"""
