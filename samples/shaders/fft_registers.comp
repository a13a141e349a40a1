#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "include/complex.glsl"
// One whole transform per invocation, held in registers and fully unrolled: heavy for a compiler.
layout(local_size_x = 64) in;
layout(constant_id = 0) const int LOG2_SIZE = 5;
layout(constant_id = 1) const bool INVERSE = false;
const int MAXIMUM = 256;
layout(set = 0, binding = 0, std430) buffer Data { vec2 data[]; };

void main() {
    const int size = 1 << LOG2_SIZE;
    vec2 v[MAXIMUM];
    uint base = gl_GlobalInvocationID.x * uint(size);
    [[unroll]] for (int i = 0; i < size; i++) v[bitfieldReverse(i) >> (32 - LOG2_SIZE) & (size - 1)] = data[base + i];
    [[unroll]] for (int stage = 0; stage < LOG2_SIZE; stage++) {
        [[unroll]] for (int i = 0; i < size / 2; i++) {
            int n = 1 << stage;
            int k = i & (n - 1);
            int j = ((i - k) << 1) + k;
            float angle = (INVERSE ? 3.14159265 : -3.14159265) * float(k) / float(n);
            vec2 t = complexMul(v[j + n], complexExp(angle));
            v[j + n] = v[j] - t;
            v[j] = v[j] + t;
        }
    }
    [[unroll]] for (int i = 0; i < size; i++) data[base + i] = v[i];
}
