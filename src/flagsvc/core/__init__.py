"""The base of every other package: errors, clock, log, version, certificates, background tasks, back-off."""
