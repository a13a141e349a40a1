#version 460
layout(local_size_x = 64) in;
struct Body { vec4 position; vec4 orientation; vec4 velocity; vec4 angular; vec4 halfExtent; };
struct Contact { vec4 pointDepth; vec4 normal; uint a; uint b; uint unused0; uint unused1; };
layout(set = 0, binding = 0, std430) readonly buffer Bodies { Body bodies[]; };
layout(set = 0, binding = 1, std430) readonly buffer Pairs { uint pairCount; uvec2 pairs[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Contacts { Contact contacts[]; };
layout(set = 0, binding = 3, std430) buffer ContactCount { uint contactCount; };

mat3 axes(vec4 q) {
    vec3 a = q.xyz * 2.0;
    mat3 m;
    m[0] = vec3(1.0 - q.y * a.y - q.z * a.z, q.x * a.y + q.w * a.z, q.x * a.z - q.w * a.y);
    m[1] = vec3(q.x * a.y - q.w * a.z, 1.0 - q.x * a.x - q.z * a.z, q.y * a.z + q.w * a.x);
    m[2] = vec3(q.x * a.z + q.w * a.y, q.y * a.z - q.w * a.x, 1.0 - q.x * a.x - q.y * a.y);
    return m;
}

float extentOn(mat3 m, vec3 h, vec3 axis) {
    return h.x * abs(dot(m[0], axis)) + h.y * abs(dot(m[1], axis)) + h.z * abs(dot(m[2], axis));
}

void main() {
    if (gl_GlobalInvocationID.x >= pairCount) return;
    uvec2 pair = pairs[gl_GlobalInvocationID.x];
    Body a = bodies[pair.x], b = bodies[pair.y];
    mat3 ma = axes(a.orientation), mb = axes(b.orientation);
    vec3 d = b.position.xyz - a.position.xyz;
    float best = 1e9;
    vec3 normal = vec3(0.0);
    for (int i = 0; i < 15; i++) {
        vec3 axis = i < 3 ? ma[i] : i < 6 ? mb[i - 3] : cross(ma[(i - 6) / 3], mb[(i - 6) % 3]);
        float l = length(axis);
        if (l < 1e-4) continue;
        axis /= l;
        float overlap = extentOn(ma, a.halfExtent.xyz, axis) + extentOn(mb, b.halfExtent.xyz, axis) - abs(dot(d, axis));
        if (overlap < 0.0) return;
        if (overlap < best) {
            best = overlap;
            normal = dot(d, axis) < 0.0 ? -axis : axis;
        }
    }
    uint slot = atomicAdd(contactCount, 1u);
    contacts[slot] = Contact(vec4(a.position.xyz + normal * best, best), vec4(normal, 0.0), pair.x, pair.y, 0u, 0u);
}
