"""Speech to lines of text with their times and languages, by a local Whisper model.

`recogniser` runs the model, the others cut its sound, its words and its lines.
"""
