"""Measurements of the models that embed pictures: `kinodex bench towers`.

May import `index.embedding`, `index.store` and the errors.
"""
