#version 460
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint SHIFT = 0;
layout(set = 0, binding = 0, std430) readonly buffer Keys { uint keys[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Histogram { uint histogram[]; };
layout(push_constant) uniform Push { uint count; uint groups; } push;
shared uint bins[256];

void main() {
    bins[gl_LocalInvocationIndex] = 0u;
    barrier();
    for (uint i = 0u; i < 16u; i++) {
        uint at = gl_WorkGroupID.x * 4096u + i * 256u + gl_LocalInvocationIndex;
        if (at < push.count) atomicAdd(bins[(keys[at] >> SHIFT) & 255u], 1u);
    }
    barrier();
    histogram[gl_LocalInvocationIndex * push.groups + gl_WorkGroupID.x] = bins[gl_LocalInvocationIndex];
}
