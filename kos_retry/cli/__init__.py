"""The command line: one module a command, each parses, composes, calls, renders."""
