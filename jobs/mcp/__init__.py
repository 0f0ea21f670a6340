"""A library as tools of an assistant, over the Model Context Protocol.

`tools` read the library, `ask_tool` puts questions to an agent, `replies` bounds what one call returns, `server` offers
them. May import index, agent, and of jobs only what lies directly in it; nothing here opens a video file.
"""
