"""The kit of both products for HTTP: requests and responses, shapes of bodies, entity tags, limits; a server and a client.

contract.py       `Contract`: what the server needs of a product. No method raises
call.py           `Call`: one request on its way. `Call.handler` answers it: the contract, or what its `check_head` has chosen
keys.py           `KeyCheck.find_key` compares the key of a caller, and raises the 401 or 403 of http_errors.py
json_text.py      reads a JSON body, and raises the 400 with the position of the error
parts.py          `PartsResponse`: an answer that comes in parts over time (decision 0032)
streams.py        `Streams`: callers that stay connected and hear of changes; delta.py: what has changed between two documents
etag.py           the hash of a tag; client_query.py: `knows_segments` says which SDK is so old that its segments are inlined
route.py          the columns of routes and of metrics.py that both products share
reached_limits.py the names of the limits that callers reach
"""
