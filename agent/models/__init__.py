"""Language models behind endpoints, as models that answer requests: roles, the wire, and what servers do to it.

Uses requests and prompts, and knows no agent. `kinodex.agent.local` has models in this process, and
`kinodex.agent.similarity` one without language.
"""
