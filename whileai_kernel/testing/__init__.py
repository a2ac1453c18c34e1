"""The conformance kit: checks that every component of a kind must pass, as plain functions."""
