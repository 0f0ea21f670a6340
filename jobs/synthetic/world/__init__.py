"""The sketch world: pictures and films drawn by code, whose truth is known exactly."""
