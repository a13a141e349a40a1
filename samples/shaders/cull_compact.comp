#version 460
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 128) in;
layout(set = 0, binding = 0, std430) readonly buffer Visible { uint visible[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Compacted { uint compacted[]; };
layout(set = 0, binding = 2, std430) buffer Counter { uint total; };
layout(push_constant) uniform Push { uint count; } push;

void main() {
    uint id = gl_GlobalInvocationID.x;
    bool keep = id < push.count && visible[min(id, push.count - 1u)] != 0u;
    uvec4 ballot = subgroupBallot(keep);
    uint base = 0u;
    if (subgroupElect()) base = atomicAdd(total, subgroupBallotBitCount(ballot));
    base = subgroupBroadcastFirst(base);
    if (keep) compacted[base + subgroupBallotExclusiveBitCount(ballot)] = id;
}
