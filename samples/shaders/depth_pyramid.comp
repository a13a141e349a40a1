#version 460
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 16, local_size_y = 16) in;
layout(constant_id = 0) const bool REVERSED_Z = false;
layout(set = 0, binding = 0) uniform sampler2D depth;
layout(set = 0, binding = 1, r32f) uniform writeonly image2D mips[4];
shared float tile[16][16];

float pick(float a, float b) {
    return REVERSED_Z ? min(a, b) : max(a, b);
}

void main() {
    ivec2 l = ivec2(gl_LocalInvocationID.xy);
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    vec4 d = textureGather(depth, (vec2(at) + 0.5) / vec2(textureSize(depth, 0) / 2));
    float v = pick(pick(d.x, d.y), pick(d.z, d.w));
    imageStore(mips[0], at, vec4(v));
    tile[l.y][l.x] = v;
    barrier();
    [[unroll]] for (int level = 1; level < 4; level++) {
        int s = 1 << level;
        if ((l.x & (s - 1)) == 0 && (l.y & (s - 1)) == 0) {
            int h = s >> 1;
            v = pick(pick(tile[l.y][l.x], tile[l.y][l.x + h]), pick(tile[l.y + h][l.x], tile[l.y + h][l.x + h]));
            tile[l.y][l.x] = v;
            if (level == 1) imageStore(mips[1], at >> 1, vec4(v));
            else if (level == 2) imageStore(mips[2], at >> 2, vec4(v));
            else imageStore(mips[3], at >> 3, vec4(v));
        }
        barrier();
    }
}
