"""Small models with random weights, saved to disk and loaded as those of users are.

May import everything of the project.
"""
