"""The sources of configuration documents: the upstream, a file, a bootstrap address. Each implements `ports.Source`."""

from flagsvc.proxy.configuration.sources.bootstrap import BootstrapSource
from flagsvc.proxy.configuration.sources.file import FileSource
from flagsvc.proxy.configuration.sources.http import HttpSource

__all__ = ["BootstrapSource", "FileSource", "HttpSource"]
