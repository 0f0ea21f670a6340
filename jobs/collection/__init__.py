"""A question to a whole collection: a plan, a table filled in film by film, an answer from its rows. `ask --agent all`.

The table is an extract (`kinodex.jobs.add.extract`), made for the question and kept with its plan: so it can be gone on
with after a kill, is paid once, and is read by `kinodex sql`. Films are candidates by what a search finds for the
plan's words; the answer says which were not looked at.

answer = ask_collection(library, CollectionRequest("In which films does someone fall?", ModelChoice("gpt-4o-mini")))
"""
