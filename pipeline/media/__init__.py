"""Parts of a video as files and streams of their own: cut at key frames without loss, or exactly by encoding again.

Uses decoding, and knows what browsers play.
"""
