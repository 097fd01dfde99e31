"""The frontend API of the flag server: the service of the proxy answers, from what the flag server has in memory (decision 0026).

It stands above both products, which do not know each other. `FrontendContract` in `contract.py` finds the token, and the proxy's
`Service` of its environment and projects, which is made of the document of backend tokens. `StoredMetrics` checks what SDKs report,
and `report_store.py` stores it.
"""
