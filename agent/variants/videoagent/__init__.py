"""agent/variants/videoagent."""
