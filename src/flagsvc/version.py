"""The one place that knows the version."""

VERSION = "0.1.0"
"""The running version: `flagsvc --version`, OpenAPI `info.version`, a metric and the `unleash-sdk` header upstream."""
