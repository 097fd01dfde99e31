"""What everything rests on: errors, the clock, the log, the version, certificates, background tasks, back-off."""
