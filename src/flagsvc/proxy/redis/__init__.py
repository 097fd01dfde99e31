"""Storage on a Redis or Valkey server, which replicas share (specification: Options; decision 0029).

    client   a client with time limits and with errors of flagsvc
    stores   configurations and unsent usage metrics on the server

This package imports Redis. So it is imported only if the storage is on such a server.
"""
