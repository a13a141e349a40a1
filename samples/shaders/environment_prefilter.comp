#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/brdf.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const int SAMPLES = 64;
layout(set = 0, binding = 0) uniform samplerCube source;
layout(set = 0, binding = 1, rgba16f) uniform writeonly imageCube result;
layout(push_constant) uniform Push { float roughness; uint resolution; } push;

void main() {
    vec2 st = (vec2(gl_GlobalInvocationID.xy) + 0.5) / float(push.resolution) * 2.0 - 1.0;
    uint face = gl_GlobalInvocationID.z;
    vec3 n = face == 0u ? vec3(1, -st.y, -st.x) : face == 1u ? vec3(-1, -st.y, st.x) : face == 2u ? vec3(st.x, 1, st.y)
        : face == 3u ? vec3(st.x, -1, -st.y) : face == 4u ? vec3(st.x, -st.y, 1) : vec3(-st.x, -st.y, -1);
    n = normalize(n);
    vec3 up = abs(n.z) < 0.999 ? vec3(0, 0, 1) : vec3(1, 0, 0);
    vec3 t = normalize(cross(up, n)), b = cross(n, t);
    vec4 sum = vec4(0.0);
    for (int i = 0; i < SAMPLES; i++) {
        vec2 xi = vec2(float(i) / float(SAMPLES), float(bitfieldReverse(uint(i))) * 2.3283064e-10);
        float a = push.roughness * push.roughness;
        float cosTheta = sqrt((1.0 - xi.y) / (1.0 + (a * a - 1.0) * xi.y));
        float sinTheta = sqrt(1.0 - cosTheta * cosTheta);
        vec3 h = t * sinTheta * cos(6.2831853 * xi.x) + b * sinTheta * sin(6.2831853 * xi.x) + n * cosTheta;
        vec3 l = reflect(-n, h);
        float nDotL = dot(n, l);
        float pdf = distributionGGX(cosTheta, push.roughness) * 0.25;
        if (nDotL > 0.0) sum += vec4(textureLod(source, l, 0.5 * log2(1.0 / max(pdf * float(SAMPLES), 1e-4)) + 8.0).rgb, 1.0) * nDotL;
    }
    imageStore(result, ivec3(gl_GlobalInvocationID), sum / max(sum.a, 1e-4));
}
