"""Questions about a story film, by what they need: pictures, text on screen, spoken words, or pictures and words.

Each is true of one option alone, by the film's events; the false options are of the same film wherever it has enough.
"""
