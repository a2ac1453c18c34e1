"""The front door: import whileai as wai."""
