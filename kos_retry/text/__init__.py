"""Text work on the standard library alone, shared by the core and the extractors."""
