"""The interface of a compiler plugin, the shipped plugins, and the names of values."""
