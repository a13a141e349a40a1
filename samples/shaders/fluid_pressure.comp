#version 460
layout(local_size_x = 8, local_size_y = 8, local_size_z = 4) in;
layout(set = 0, binding = 0, r32f) uniform readonly image3D pressureIn;
layout(set = 0, binding = 1, r32f) uniform writeonly image3D pressureOut;
layout(set = 0, binding = 2, r32f) uniform readonly image3D divergence;

void main() {
    ivec3 p = ivec3(gl_GlobalInvocationID);
    float sum = 0.0;
    for (int i = 0; i < 3; i++) {
        ivec3 o = ivec3(0);
        o[i] = 1;
        sum += imageLoad(pressureIn, p + o).r + imageLoad(pressureIn, p - o).r;
    }
    imageStore(pressureOut, p, vec4((sum - imageLoad(divergence, p).r) / 6.0));
}
