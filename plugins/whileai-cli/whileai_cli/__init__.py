"""The wai command; every sub-command comes from a plugin."""
