"""Films for those who have none at hand: photographs panned over, whose content is known."""
