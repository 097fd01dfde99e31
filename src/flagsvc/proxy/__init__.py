"""The proxy: how a configuration arrives, how requests are answered from it, and what is reported upstream."""
