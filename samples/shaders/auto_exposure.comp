#version 460
layout(local_size_x = 256) in;
layout(set = 0, binding = 0, std430) readonly buffer Histogram { uint histogram[256]; };
layout(set = 0, binding = 1, std430) buffer Exposure { float exposure; };
layout(push_constant) uniform Push { float pixels; float adaptation; } push;
shared float sums[256];

void main() {
    uint t = gl_LocalInvocationIndex;
    sums[t] = float(histogram[t]) * float(t);
    for (uint d = 128u; d > 0u; d >>= 1) {
        barrier();
        if (t < d) sums[t] += sums[t + d];
    }
    if (t == 0u) {
        float mean = exp2((sums[0] / max(push.pixels - float(histogram[0]), 1.0) - 1.0) / 254.0 * 20.0 - 10.0);
        exposure += (0.18 / max(mean, 1e-4) - exposure) * push.adaptation;
    }
}
