#version 460
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BONES_PER_VERTEX = 4;
struct Vertex { vec4 position; vec4 normal; uvec4 bones; vec4 weights; };
layout(set = 0, binding = 0, std430) readonly buffer Source { Vertex source[]; };
layout(set = 0, binding = 1, std430) readonly buffer Bones { mat3x4 bones[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Result { vec4 result[]; };
layout(push_constant) uniform Push { uint count; } push;

void main() {
    uint id = gl_GlobalInvocationID.x;
    if (id >= push.count) return;
    Vertex v = source[id];
    mat3x4 m = bones[v.bones.x] * v.weights.x;
    for (uint i = 1u; i < BONES_PER_VERTEX; i++) m += bones[v.bones[i]] * v.weights[i];
    result[id * 2u] = vec4(vec4(v.position.xyz, 1.0) * m, 1.0);
    result[id * 2u + 1u] = vec4(vec4(v.normal.xyz, 0.0) * m, 0.0);
}
