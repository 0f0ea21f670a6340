"""Parts of a video as files of their own: cut at key frames without loss, or exactly by encoding again.

For people and their tools; nothing here samples or embeds, and no agent comes here.
"""
