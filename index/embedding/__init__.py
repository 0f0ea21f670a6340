"""Open_clip models as embedding spaces."""
