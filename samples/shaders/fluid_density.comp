#version 460
layout(local_size_x = 128) in;
layout(constant_id = 0) const float RADIUS = 0.1;
layout(constant_id = 1) const bool FORCES = false;
layout(set = 0, binding = 0, std430) buffer Positions { vec4 positions[]; };
layout(set = 0, binding = 1, std430) buffer Velocities { vec4 velocities[]; };
layout(set = 0, binding = 2, std430) readonly buffer Cells { uvec2 cells[]; };
layout(push_constant) uniform Push { uvec4 grid; float deltaTime; } push;

void main() {
    uint id = gl_GlobalInvocationID.x;
    if (id >= push.grid.w) return;
    vec4 own = positions[id];
    ivec3 cell = ivec3(own.xyz / RADIUS);
    float density = 0.0;
    vec3 force = vec3(0.0);
    for (int z = -1; z <= 1; z++) for (int y = -1; y <= 1; y++) for (int x = -1; x <= 1; x++) {
        ivec3 c = cell + ivec3(x, y, z);
        if (any(lessThan(c, ivec3(0))) || any(greaterThanEqual(c, ivec3(push.grid.xyz)))) continue;
        uvec2 range = cells[(uint(c.z) * push.grid.y + uint(c.y)) * push.grid.x + uint(c.x)];
        for (uint i = range.x; i < range.y; i++) {
            vec3 d = own.xyz - positions[i].xyz;
            float q = max(1.0 - dot(d, d) / (RADIUS * RADIUS), 0.0);
            density += q * q * q;
            if (FORCES) force += d * q * q * (own.w + positions[i].w) + (velocities[i].xyz - velocities[id].xyz) * q * 0.1;
        }
    }
    if (FORCES) velocities[id].xyz += force * push.deltaTime;
    else positions[id].w = density;
}
