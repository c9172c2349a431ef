"""Telling people and programs what happened: on the terminal, as text, JSON and markdown."""
