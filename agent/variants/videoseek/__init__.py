"""agent/variants/videoseek."""
