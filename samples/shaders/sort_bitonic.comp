#version 460
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint GROUP = 256;
layout(constant_id = 1) const bool DESCENDING = false;
layout(set = 0, binding = 0, std430) buffer Keys { uvec2 pairs[]; };
shared uvec2 local[GROUP * 2u];

void main() {
    uint t = gl_LocalInvocationIndex;
    uint base = gl_WorkGroupID.x * GROUP * 2u;
    local[t] = pairs[base + t];
    local[t + GROUP] = pairs[base + t + GROUP];
    for (uint size = 2u; size <= GROUP * 2u; size <<= 1) {
        for (uint stride = size >> 1; stride > 0u; stride >>= 1) {
            barrier();
            uint i = 2u * t - (t & (stride - 1u));
            bool up = (i & size) == 0u;
            uvec2 a = local[i], b = local[i + stride];
            if ((a.x > b.x) == (up != DESCENDING)) {
                local[i] = b;
                local[i + stride] = a;
            }
        }
    }
    barrier();
    pairs[base + t] = local[t];
    pairs[base + t + GROUP] = local[t + GROUP];
}
