"""Commands and jobs where torch, or all but the base install, is not there."""
