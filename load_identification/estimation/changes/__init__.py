"""Detect changes of load and offset, and contacts, and identify their cause."""
