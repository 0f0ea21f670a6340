"""The agents of papers, step by step beside transcriptions that are written from the papers alone.

A transcription owns every constant, gets similarities and replies as numbers in a table, and shares no code with the
agent. It also says what the prompts of a paper contain, and what ours must not add.
"""
