"""Shared Typer options."""
