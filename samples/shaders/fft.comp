#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/complex.glsl"
// One row per work group, in shared memory, radix 2.
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint HALF = 128;
layout(constant_id = 1) const bool INVERSE = false;
layout(set = 0, binding = 0, std430) buffer Data { vec2 data[]; };
shared vec2 a[HALF * 2u];
shared vec2 b[HALF * 2u];

void main() {
    uint t = gl_LocalInvocationIndex;
    uint base = gl_WorkGroupID.x * HALF * 2u;
    a[t] = data[base + t];
    a[t + HALF] = data[base + t + HALF];
    bool flip = false;
    for (uint n = 1u; n < HALF * 2u; n <<= 1) {
        barrier();
        uint k = t & (n - 1u);
        float angle = (INVERSE ? 3.14159265 : -3.14159265) * float(k) / float(n);
        vec2 u = flip ? b[t] : a[t];
        vec2 v = complexMul(flip ? b[t + HALF] : a[t + HALF], complexExp(angle));
        uint j = ((t - k) << 1) + k;
        if (flip) { a[j] = u + v; a[j + n] = u - v; }
        else { b[j] = u + v; b[j + n] = u - v; }
        flip = !flip;
    }
    barrier();
    float scale = INVERSE ? 0.5 / float(HALF) : 1.0;
    data[base + t] = (flip ? b[t] : a[t]) * scale;
    data[base + t + HALF] = (flip ? b[t + HALF] : a[t + HALF]) * scale;
}
