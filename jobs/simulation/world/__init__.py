"""Search studied without videos or models: a model that knows the evidence, and videos made by arithmetic."""
