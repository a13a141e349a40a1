"""What a Direct3D 12 desc is in Vulkan: one pipeline description for each of its parts, with its shaders translated."""
