"""Playing the videos of a library in the page of `kinodex serve`.

`routes` answer requests; `playback` chooses how to play a video, and `children` read files in processes of their own.
"""
