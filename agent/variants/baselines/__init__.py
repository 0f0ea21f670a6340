"""Controls: agents that search nothing. Equally spaced frames, the question alone, an option by chance.

May import `agent` apart from the other variants; nothing but the registry imports it.
"""
