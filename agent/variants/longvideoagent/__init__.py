"""agent/variants/longvideoagent."""
