"""Who answers: OpenAI-compatible endpoint, local transformers."""
