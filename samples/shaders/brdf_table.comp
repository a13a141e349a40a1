#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/brdf.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const uint SAMPLES = 128;
layout(set = 0, binding = 0, rg16f) uniform writeonly image2D result;

void main() {
    vec2 size = vec2(imageSize(result));
    float nDotV = (float(gl_GlobalInvocationID.x) + 0.5) / size.x;
    float roughness = (float(gl_GlobalInvocationID.y) + 0.5) / size.y;
    vec3 v = vec3(sqrt(1.0 - nDotV * nDotV), 0.0, nDotV);
    vec2 sum = vec2(0.0);
    for (uint i = 0u; i < SAMPLES; i++) {
        vec2 xi = vec2(float(i) / float(SAMPLES), float(bitfieldReverse(i)) * 2.3283064e-10);
        float a = roughness * roughness;
        float c = sqrt((1.0 - xi.y) / (1.0 + (a * a - 1.0) * xi.y));
        float s = sqrt(1.0 - c * c);
        vec3 h = vec3(s * cos(2.0 * PI * xi.x), s * sin(2.0 * PI * xi.x), c);
        float vDotH = max(dot(v, h), 0.0);
        float nDotL = 2.0 * vDotH * h.z - v.z;
        if (nDotL > 0.0) {
            float g = visibilitySmith(nDotV, nDotL, roughness) * 4.0 * nDotL * vDotH / max(h.z, 1e-4);
            float f = pow(1.0 - vDotH, 5.0);
            sum += vec2(1.0 - f, f) * g;
        }
    }
    imageStore(result, ivec2(gl_GlobalInvocationID.xy), vec4(sum / float(SAMPLES), 0.0, 0.0));
}
