"""The offline stand-in without a language model."""
