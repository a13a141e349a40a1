#version 460
layout(local_size_x = 256) in;
layout(set = 0, binding = 0, std430) readonly buffer Positions { vec4 positions[]; };
layout(set = 0, binding = 1, std430) buffer Velocities { vec4 velocities[]; };
layout(push_constant) uniform Push { uint count; float softening; float deltaTime; } push;
shared vec4 tile[256];

void main() {
    vec3 own = positions[gl_GlobalInvocationID.x].xyz;
    vec3 acceleration = vec3(0.0);
    for (uint base = 0u; base < push.count; base += 256u) {
        tile[gl_LocalInvocationIndex] = positions[base + gl_LocalInvocationIndex];
        barrier();
        for (uint i = 0u; i < 256u; i++) {
            vec3 d = tile[i].xyz - own;
            float inverse = inversesqrt(dot(d, d) + push.softening);
            acceleration += d * tile[i].w * inverse * inverse * inverse;
        }
        barrier();
    }
    velocities[gl_GlobalInvocationID.x].xyz += acceleration * push.deltaTime;
}
