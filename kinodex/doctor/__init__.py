"""Checks of this machine for `kinodex doctor`: each part is really tried, as far as that costs seconds.

`machine` holds a function for each section of the page.
"""
