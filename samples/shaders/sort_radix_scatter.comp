#version 460
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint SHIFT = 0;
layout(set = 0, binding = 0, std430) readonly buffer Keys { uint keys[]; };
layout(set = 0, binding = 1, std430) readonly buffer Offsets { uint offsets[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Sorted { uint sorted[]; };
layout(push_constant) uniform Push { uint count; uint groups; } push;
shared uint base[256];

void main() {
    base[gl_LocalInvocationIndex] = offsets[gl_LocalInvocationIndex * push.groups + gl_WorkGroupID.x];
    barrier();
    for (uint i = 0u; i < 16u; i++) {
        uint at = gl_WorkGroupID.x * 4096u + i * 256u + gl_LocalInvocationIndex;
        bool live = at < push.count;
        uint key = live ? keys[at] : 0xffffffffu;
        uint digit = (key >> SHIFT) & 255u;
        uvec4 peers = subgroupBallot(live);
        for (uint bit = 0u; bit < 8u; bit++) {
            bool set = ((digit >> bit) & 1u) != 0u;
            uvec4 vote = subgroupBallot(set);
            peers &= set ? vote : ~vote;
        }
        uint rank = subgroupBallotExclusiveBitCount(peers);
        uint leader = subgroupBallotFindLSB(peers);
        uint start = 0u;
        for (uint s = 0u; s < gl_NumSubgroups; s++) {
            if (s == gl_SubgroupID && live && gl_SubgroupInvocationID == leader) start = atomicAdd(base[digit], subgroupBallotBitCount(peers));
            barrier();
        }
        start = subgroupShuffle(start, leader);
        if (live) sorted[start + rank] = key;
    }
}
