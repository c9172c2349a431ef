"""Starting processes, passing their output through, and seeing that they end."""
