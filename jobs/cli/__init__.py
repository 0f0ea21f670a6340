"""One file a command; imports, parses, calls, prints."""
