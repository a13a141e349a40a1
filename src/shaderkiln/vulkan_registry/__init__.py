"""Everything generated from the Vulkan registry (tools/registry): structures, C definitions, requirement tables, constants."""
