"""The HTTP client towards upstream servers: connections, TLS, outbound proxies."""
