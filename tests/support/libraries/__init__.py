"""Small libraries, films and annotation files of the tests.

May import everything of the project.
"""
