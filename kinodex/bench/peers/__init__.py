"""Programs in the place of other people's, which `kinodex lab bench ingest` runs beside kinodex; nothing imports them.

Each indexes films with open_clip on a CPU as its makers' documentation, or a competent person, would write it. Its
`main` is called in a process of its own: Pixeltable takes no function of a program that is run as a file.
"""
