"""Videos of one library as agents see them: frames, lines, and matches of both on one scale.

No file, no label, no answer: an agent knows what its environment tells.
"""
