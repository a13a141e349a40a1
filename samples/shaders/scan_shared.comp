#version 460
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint GROUP = 256;
layout(constant_id = 1) const bool INCLUSIVE = false;
layout(set = 0, binding = 0, std430) buffer Values { uint values[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Totals { uint totals[]; };
shared uint local[GROUP];

void main() {
    uint t = gl_LocalInvocationIndex;
    uint own = values[gl_GlobalInvocationID.x];
    local[t] = own;
    for (uint d = 1u; d < GROUP; d <<= 1) {
        barrier();
        uint add = t >= d ? local[t - d] : 0u;
        barrier();
        local[t] += add;
    }
    barrier();
    values[gl_GlobalInvocationID.x] = INCLUSIVE ? local[t] : local[t] - own;
    if (t == GROUP - 1u) totals[gl_WorkGroupID.x] = local[t];
}
