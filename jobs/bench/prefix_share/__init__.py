"""`kinodex bench prefix`: the share of the agents' prompts that a server finds in its cache of prefixes."""
