"""Makers of pictures in docs/pictures, one module a page. They draw their own films and serve them in this process."""
