#version 460
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) readonly buffer Vertices { vec4 clip[]; };
layout(set = 0, binding = 1, std430) readonly buffer Indices { uint indices[]; };
layout(set = 0, binding = 2, std430) buffer Visibility { uint64_t visibility[]; };
layout(push_constant) uniform Push { uvec2 size; uint triangles; } push;

void main() {
    uint t = gl_GlobalInvocationID.x;
    if (t >= push.triangles) return;
    vec4 a = clip[indices[t * 3u]], b = clip[indices[t * 3u + 1u]], c = clip[indices[t * 3u + 2u]];
    vec2 s = vec2(push.size);
    vec3 p0 = vec3((a.xy / a.w * 0.5 + 0.5) * s, a.z / a.w);
    vec3 p1 = vec3((b.xy / b.w * 0.5 + 0.5) * s, b.z / b.w);
    vec3 p2 = vec3((c.xy / c.w * 0.5 + 0.5) * s, c.z / c.w);
    vec2 e0 = p1.xy - p0.xy, e1 = p2.xy - p0.xy;
    float area = e0.x * e1.y - e0.y * e1.x;
    if (area <= 0.0) return;
    vec2 low = max(floor(min(p0.xy, min(p1.xy, p2.xy))), 0.0);
    vec2 high = min(ceil(max(p0.xy, max(p1.xy, p2.xy))), s - 1.0);
    for (float y = low.y; y <= high.y; y++) for (float x = low.x; x <= high.x; x++) {
        vec2 d = vec2(x, y) + 0.5 - p0.xy;
        float v = (d.x * e1.y - d.y * e1.x) / area;
        float w = (e0.x * d.y - e0.y * d.x) / area;
        if (v < 0.0 || w < 0.0 || v + w > 1.0) continue;
        float z = p0.z + v * (p1.z - p0.z) + w * (p2.z - p0.z);
        uint64_t packed = (uint64_t(floatBitsToUint(1.0 - z)) << 32) | uint64_t(t);
        atomicMax(visibility[uint(y) * push.size.x + uint(x)], packed);
    }
}
