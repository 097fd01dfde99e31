"""Where configuration documents come from: the upstream, a file, a bootstrap address. All of them are a `ports.Source`."""

from flagsvc.repository.sources.bootstrap import BootstrapSource
from flagsvc.repository.sources.file import FileSource
from flagsvc.repository.sources.http import HttpSource

__all__ = ["BootstrapSource", "FileSource", "HttpSource"]
