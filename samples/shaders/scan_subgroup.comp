#version 460
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 512) in;
layout(constant_id = 0) const uint PER_THREAD = 4;
layout(set = 0, binding = 0, std430) buffer Values { uint values[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Totals { uint totals[]; };
shared uint partial[128];

void main() {
    uint base = gl_GlobalInvocationID.x * PER_THREAD;
    uint own[16];
    uint sum = 0u;
    for (uint i = 0u; i < PER_THREAD; i++) {
        own[i] = sum;
        sum += values[base + i];
    }
    uint before = subgroupExclusiveAdd(sum);
    if (gl_SubgroupInvocationID == gl_SubgroupSize - 1u) partial[gl_SubgroupID] = before + sum;
    barrier();
    if (gl_SubgroupID == 0u) {
        uint carry = 0u;
        for (uint s = 0u; s < gl_NumSubgroups; s += gl_SubgroupSize) {
            uint at = s + gl_SubgroupInvocationID;
            uint v = at < gl_NumSubgroups ? partial[at] : 0u;
            uint e = subgroupExclusiveAdd(v) + carry;
            if (at < gl_NumSubgroups) partial[at] = e;
            carry += subgroupAdd(v);
        }
        if (subgroupElect()) totals[gl_WorkGroupID.x] = carry;
    }
    barrier();
    for (uint i = 0u; i < PER_THREAD; i++) values[base + i] = own[i] + before + partial[gl_SubgroupID];
}
