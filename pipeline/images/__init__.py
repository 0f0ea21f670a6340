"""Images: a decoded frame to RGB, RGB to JPEG and to a model's input, and RGB frames to a video.

May import `pipeline.errors` only.
"""
