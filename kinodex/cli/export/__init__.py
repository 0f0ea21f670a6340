"""`kinodex export`: videos of a library, and moments in them, as files for other programs.

`command` lists the kinds, `options` has their options, and the other files write them.
"""
