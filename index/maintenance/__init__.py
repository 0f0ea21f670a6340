"""Audit, sweep, compact, purge, remove."""
