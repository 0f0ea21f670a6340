"""Text in pictures: read from one picture, limited to the scripts of languages, and joined over the frames of a video.

May import `pipeline.models.boxes` and `pipeline.errors`. `rapidocr` is imported here alone.
"""
