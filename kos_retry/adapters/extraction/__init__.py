"""Finding extractors, asking them in processes that can be killed, and merging what they answer."""
