"""The objects of the admin API, one module for each kind: functions that run in one transaction."""
