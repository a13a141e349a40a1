#version 460
layout(local_size_x_id = 0, local_size_y_id = 0) in;
layout(constant_id = 0) const uint TILE = 16;
layout(set = 0, binding = 0, std430) readonly buffer A { float a[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { float b[]; };
layout(set = 0, binding = 2, std430) writeonly buffer C { float c[]; };
layout(push_constant) uniform Push { uint m; uint n; uint k; } push;
shared float ta[TILE][TILE];
shared float tb[TILE][TILE];

void main() {
    uvec2 l = gl_LocalInvocationID.xy;
    uvec2 g = gl_WorkGroupID.xy * TILE + l;
    float sum = 0.0;
    for (uint base = 0u; base < push.k; base += TILE) {
        ta[l.y][l.x] = a[g.y * push.k + base + l.x];
        tb[l.y][l.x] = b[(base + l.y) * push.n + g.x];
        barrier();
        for (uint i = 0u; i < TILE; i++) sum = fma(ta[l.y][i], tb[i][l.x], sum);
        barrier();
    }
    c[g.y * push.n + g.x] = sum;
}
