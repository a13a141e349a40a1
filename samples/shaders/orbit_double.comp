#version 460
layout(local_size_x = 64) in;
layout(constant_id = 0) const int STEPS = 16;
layout(set = 0, binding = 0, std430) buffer States { dvec4 positions[64]; dvec4 velocities[]; };

void main() {
    uint id = gl_GlobalInvocationID.x;
    dvec3 p = positions[id & 63u].xyz;
    dvec3 v = velocities[id].xyz;
    for (int i = 0; i < STEPS; i++) {
        double r2 = dot(p, p);
        v -= p / (r2 * sqrt(r2)) * 0.001lf;
        p += v * 0.001lf;
    }
    positions[id & 63u].xyz = p;
    velocities[id].xyz = v;
}
