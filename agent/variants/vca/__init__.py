"""agent/variants/vca."""
