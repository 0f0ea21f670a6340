"""Films with scenes and chapters, for tests.

May import tests.support.libraries.
"""
