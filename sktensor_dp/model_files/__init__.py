"""Model files: released values and the report, without pickle."""
