"""Agents of frameworks, recognised by the module of their class: nothing is imported that is not imported already."""
