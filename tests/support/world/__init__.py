"""A world for agents: drawn story films, an ideal observer in the place of a model's eyes, and experiments on both.

Everything but the eyes is real: films, library, agents, prompts, HTTP. May import everything; tests and measurements
import it. Nothing here is a result about a real model.
"""
