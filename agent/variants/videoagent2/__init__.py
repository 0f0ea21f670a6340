"""agent/variants/videoagent2."""
