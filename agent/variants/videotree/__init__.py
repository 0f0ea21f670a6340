"""agent/variants/videotree."""
