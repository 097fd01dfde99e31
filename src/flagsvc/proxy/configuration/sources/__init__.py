"""Where configuration documents come from: the upstream, a file, a bootstrap address. All of them are a `ports.Source`."""

from flagsvc.proxy.configuration.sources.bootstrap import BootstrapSource
from flagsvc.proxy.configuration.sources.file import FileSource
from flagsvc.proxy.configuration.sources.http import HttpSource

__all__ = ["BootstrapSource", "FileSource", "HttpSource"]
