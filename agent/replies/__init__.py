"""Replies of models: the JSON schemas that they are bound to, and the values in them as models write them.

Servers that enforce a schema write its keys in its order, so the order of a reply's fields is the order of thinking:
`reasoning`, the action, what the action needs, evidence. The same schema is sent to servers, described in words at the
end of a prompt (`agent.prompts.reply_form.reply_line`), and its class reads the reply.
"""
