"""OpenAI's API over the questions of `kinodex serve`: models, chat completions and responses.

`routes` are its routes; `request` answers each request by the question that `question` begins.
"""
