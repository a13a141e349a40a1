#version 460
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0, rg16i) uniform readonly iimage2D seedsIn;
layout(set = 0, binding = 1, rg16i) uniform writeonly iimage2D seedsOut;
layout(push_constant) uniform Push { int stride; } push;

void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    ivec2 best = ivec2(-1);
    float nearest = 1e9;
    for (int y = -1; y <= 1; y++) for (int x = -1; x <= 1; x++) {
        ivec2 seed = imageLoad(seedsIn, at + ivec2(x, y) * push.stride).rg;
        float d = distance(vec2(seed), vec2(at));
        if (seed.x >= 0 && d < nearest) {
            nearest = d;
            best = seed;
        }
    }
    imageStore(seedsOut, at, ivec4(best, 0, 0));
}
