"""Quotations and figures of a reply, compared with what the agent was shown."""
