"""An endpoint in OpenAI's form over the questions of `kinodex serve`: `/v1/models` and `/v1/chat/completions`.

`chat_request` says what a request may hold, `conversation` and `written_options` find the question in its messages,
`pictures` the moments that sent pictures are like, `chat` asks, `reply` and `stream` answer. May import the questions
of `jobs.serve`, and what those stand on; nothing that a request names is ever fetched or opened.
"""
