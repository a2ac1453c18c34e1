"""Recorded runs of other tools become rows."""
