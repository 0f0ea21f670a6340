"""Controls: agents that search nothing.

Equally spaced frames, the question alone, an option by chance.
"""
