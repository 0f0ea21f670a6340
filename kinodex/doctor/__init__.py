"""Checks of this machine for `kinodex doctor`: each part is really tried, as far as that costs seconds.

`page` gathers them; each section of the page has a module, whose functions begin with `check_`.
"""
