"""Films of the sketch world that tell a story: places that last, things that come, go and change hands, talk, signs.

May import `jobs.synthetic.world` and `pipeline.images` (to encode a film) and nothing else of the project.
"""
