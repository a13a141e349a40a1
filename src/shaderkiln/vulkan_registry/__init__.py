"""vulkan_registry"""
