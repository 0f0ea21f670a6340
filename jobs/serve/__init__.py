"""`kinodex serve`: one server where people and programs look at libraries, ask questions and play videos.

`questions` runs them, `kept_traces` keeps them, `asking_routes` and `events` speak of them over HTTP, `guards` decides
who may come in, and `app` puts all routes together. May import index, agent, and of jobs the viewer, the MCP server and
the choice of models; only `play` may open videos; `take_away` has the command line cut them, in another process.
"""
