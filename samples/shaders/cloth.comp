#version 460
layout(local_size_x = 16, local_size_y = 16) in;
layout(constant_id = 0) const int ITERATIONS = 4;
layout(set = 0, binding = 0, std430) readonly buffer Previous { vec4 previous[]; };
layout(set = 0, binding = 1, std430) buffer Current { vec4 current[]; };
layout(push_constant) uniform Push { uint width; uint height; float rest; float stiffness; vec4 wind; } push;
shared vec3 tile[18][18];

void main() {
    ivec2 l = ivec2(gl_LocalInvocationID.xy) + 1;
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    ivec2 size = ivec2(push.width, push.height);
    uint index = uint(clamp(at.y, 0, size.y - 1) * size.x + clamp(at.x, 0, size.x - 1));
    vec4 p = current[index];
    vec3 moved = p.xyz + (p.xyz - previous[index].xyz) * 0.99 + push.wind.xyz * p.w;
    tile[l.y][l.x] = moved;
    if (l.x == 1) tile[l.y][0] = moved;
    if (l.x == 16) tile[l.y][17] = moved;
    if (l.y == 1) tile[0][l.x] = moved;
    if (l.y == 16) tile[17][l.x] = moved;
    for (int i = 0; i < ITERATIONS; i++) {
        barrier();
        vec3 own = tile[l.y][l.x];
        vec3 push_ = vec3(0.0);
        for (int n = 0; n < 4; n++) {
            ivec2 o = ivec2((n & 1) * 2 - 1, 0);
            if (n > 1) o = o.yx;
            vec3 d = tile[l.y + o.y][l.x + o.x] - own;
            float len = max(length(d), 1e-5);
            push_ += d * (len - push.rest) / len * 0.25 * push.stiffness;
        }
        barrier();
        tile[l.y][l.x] = own + push_ * p.w;
    }
    if (all(lessThan(at, size))) current[index] = vec4(tile[l.y][l.x], p.w);
}
