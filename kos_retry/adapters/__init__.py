"""Implementations of the ports: processes, files, extractors, the clock."""
