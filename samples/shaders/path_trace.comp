#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/noise.glsl"
// A megakernel path tracer over a bounding volume hierarchy in buffers; no ray-tracing hardware.
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const int BOUNCES = 4;
layout(constant_id = 1) const bool NEXT_EVENT = true;
struct Node { vec4 lowLeft; vec4 highRight; };
struct Triangle { vec4 a; vec4 b; vec4 c; };
layout(set = 0, binding = 0, std430) readonly buffer Nodes { Node nodes[]; };
layout(set = 0, binding = 1, std430) readonly buffer Triangles { Triangle triangles[]; };
layout(set = 0, binding = 2, rgba32f) uniform image2D accumulation;
layout(push_constant) uniform Push { mat4 inverseViewProjection; vec4 camera; uint frameIndex; } push;

bool hitBox(Node n, vec3 o, vec3 inverse, float best) {
    vec3 t0 = (n.lowLeft.xyz - o) * inverse, t1 = (n.highRight.xyz - o) * inverse;
    vec3 low = min(t0, t1), high = max(t0, t1);
    float enter = max(max(low.x, low.y), low.z), leave = min(min(high.x, high.y), high.z);
    return leave >= max(enter, 0.0) && enter < best;
}

float trace(vec3 o, vec3 d, out vec3 normal) {
    uint stack[24];
    int top = 0;
    stack[0] = 0u;
    float best = 1e9;
    normal = vec3(0.0);
    vec3 inverse = 1.0 / d;
    while (top >= 0) {
        Node n = nodes[stack[top--]];
        if (!hitBox(n, o, inverse, best)) continue;
        uint left = floatBitsToUint(n.lowLeft.w), count = floatBitsToUint(n.highRight.w);
        if (count == 0u) {
            if (top < 21) {
                stack[++top] = left;
                stack[++top] = left + 1u;
            }
            continue;
        }
        for (uint i = 0u; i < count; i++) {
            Triangle t = triangles[left + i];
            vec3 e1 = t.b.xyz - t.a.xyz, e2 = t.c.xyz - t.a.xyz, p = cross(d, e2);
            float det = dot(e1, p);
            if (abs(det) < 1e-8) continue;
            vec3 s = (o - t.a.xyz) / det;
            float u = dot(s, p);
            vec3 q = cross(s, e1);
            float v = dot(d, q), h = dot(e2, q);
            if (u >= 0.0 && v >= 0.0 && u + v <= 1.0 && h > 1e-4 && h < best) {
                best = h;
                normal = normalize(cross(e1, e2));
            }
        }
    }
    return best;
}

void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    uint seed = hashPcg(uint(at.x) + uint(at.y) * 8192u + push.frameIndex * 104729u);
    vec2 uv = (vec2(at) + vec2(hashFloat(seed), hashFloat(seed + 1u))) / vec2(imageSize(accumulation));
    vec4 far = push.inverseViewProjection * vec4(uv * 2.0 - 1.0, 1.0, 1.0);
    vec3 o = push.camera.xyz, d = normalize(far.xyz / far.w - o);
    vec3 sum = vec3(0.0), throughput = vec3(1.0), n, unused;
    for (int i = 0; i < BOUNCES; i++) {
        float t = trace(o, d, n);
        if (t > 1e8) {
            sum += throughput * vec3(0.5, 0.7, 1.0);
            break;
        }
        o += d * t + n * 1e-3;
        vec3 l = normalize(vec3(0.3, 0.9, 0.2));
        if (NEXT_EVENT && trace(o, l, unused) > 1e8) sum += throughput * max(dot(n, l), 0.0) * 0.7;
        seed = hashPcg(seed);
        float z = hashFloat(seed) * 2.0 - 1.0, a = hashFloat(seed + 2u) * 6.2831853;
        d = normalize(n + vec3(sqrt(1.0 - z * z) * vec2(cos(a), sin(a)), z));
        throughput *= 0.7;
    }
    imageStore(accumulation, at, imageLoad(accumulation, at) + vec4(sum, 1.0));
}
