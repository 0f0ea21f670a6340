"""A vision-language model looks at the moments that a search found, and says if what is sought is there. `--verify`.

Several moments are one request: some frames of each, and what is said and written meanwhile. A verdict is kept beside
the replies of models, by model, text and moment, and paid for once. A reply that cannot be used twice is no error: its
moments stay as the search left them, and say so.
"""
