"""The model `similarity`: replies from the library's own vectors and lines, without a language model."""
