"""The store: what is remembered across sessions, in a file of the user's or on a server that runners share."""
