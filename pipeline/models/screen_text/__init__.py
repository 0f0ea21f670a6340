"""Text in pictures: read from one picture, in the scripts of languages, and joined over the frames of a video.

`reader` runs the models of PaddleOCR.
"""
