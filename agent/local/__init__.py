"""A causal language model of transformers in this process, as a `Model`.

`kinodex ask --model local:FOLDER` or a role's `model = "local:FOLDER"` names one.
"""
