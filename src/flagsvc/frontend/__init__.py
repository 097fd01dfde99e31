"""The frontend API of the flag server: the service of the proxy answers, from what the flag server has in memory (decision 0058).

It stands above both products, which do not know each other.
"""
