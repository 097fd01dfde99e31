"""The base of every other package: errors, clock, log, spans, version, certificates, background tasks, back-off."""
