"""An ingest as a Ray Data pipeline, and its comparison with `kinodex ingest --ray`: figures in docs/ingest.md."""
