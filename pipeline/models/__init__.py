"""Local models of the optional stages: captions, detections with tracks, speech and its voices, text on screen.

Each loads on first use and knows one picture, one sound or one text.
"""
