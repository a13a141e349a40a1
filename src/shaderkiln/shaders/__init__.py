"""Direct3D shaders as SPIR-V: the translator's package, its process, and the client that asks it."""
