"""Errors for optional packages that are not installed, which name the extra that brings them."""

from __future__ import annotations

from kinodex.jobs.errors import EXTRAS, UsageError


def missing_package(error: ModuleNotFoundError) -> Exception:
    """Make the error for an optional package that is not installed; any other module's is a fault of the program."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return error
    return UsageError(
        f"this needs the package {package}, which is not installed; pip install 'kinodex[{EXTRAS[package]}]'"
    )
