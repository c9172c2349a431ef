"""The pure core: from outcomes to envelopes, signatures, deltas, decisions and guidance.

Nothing here reads a clock, a file, the environment or a random number: those come as arguments.
"""
