"""Films whose near-duplicates are known, made-up walks of vectors, and what `kinodex duplicates` finds among them."""
