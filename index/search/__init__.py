"""Vector and text search, rank fusion, visibility."""
