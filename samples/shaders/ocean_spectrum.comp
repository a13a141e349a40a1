#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/complex.glsl"
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0, rg32f) uniform readonly image2D initial;
layout(set = 0, binding = 1, rgba32f) uniform writeonly image2D heightSlope;
layout(set = 0, binding = 2, rgba32f) uniform writeonly image2D displacement;
layout(push_constant) uniform Push { float time; float size; uint resolution; } push;

void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    vec2 k = 6.2831853 * (vec2(at) - float(push.resolution) * 0.5) / push.size;
    float length_ = max(length(k), 1e-4);
    float w = sqrt(9.81 * length_);
    ivec2 mirrored = (ivec2(push.resolution) - at) % int(push.resolution);
    vec2 e = complexExp(w * push.time);
    vec2 h = complexMul(imageLoad(initial, at).rg, e) + complexMul(imageLoad(initial, mirrored).rg * vec2(1, -1), e * vec2(1, -1));
    vec2 ih = vec2(-h.y, h.x);
    imageStore(heightSlope, at, vec4(h, ih * k.x));
    imageStore(displacement, at, vec4(ih * k.x / length_, ih * k.y / length_));
}
