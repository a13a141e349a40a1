#version 460
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_clustered : require
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) uniform sampler2D depth;
layout(set = 0, binding = 1, std430) buffer Range { uint low; uint high; uint blocks[]; };

void main() {
    vec2 uv = (vec2(gl_WorkGroupID.xy * 16u) + vec2(gl_LocalInvocationIndex & 15u, gl_LocalInvocationIndex >> 4) + 0.5) / vec2(textureSize(depth, 0));
    float d = textureLod(depth, uv, 0.0).r;
    float block = subgroupClusteredMax(d, 4u);
    uint lowest = floatBitsToUint(subgroupMin(d));
    uint highest = floatBitsToUint(subgroupMax(d));
    if (subgroupElect()) {
        atomicMin(low, lowest);
        atomicMax(high, highest);
    }
    if ((gl_LocalInvocationIndex & 3u) == 0u) blocks[gl_GlobalInvocationID.x >> 2] = floatBitsToUint(block);
}
