#version 460
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const int SLICES = 64;
layout(set = 0, binding = 0, rgba16f) uniform readonly image3D scattering;
layout(set = 0, binding = 1, rgba16f) uniform writeonly image3D integrated;

void main() {
    vec3 sum = vec3(0.0);
    float transmittance = 1.0;
    for (int z = 0; z < SLICES; z++) {
        ivec3 at = ivec3(gl_GlobalInvocationID.xy, z);
        vec4 s = imageLoad(scattering, at);
        float t = exp(-s.a * 0.5);
        sum += transmittance * s.rgb * (1.0 - t) / max(s.a, 1e-4);
        transmittance *= t;
        imageStore(integrated, at, vec4(sum, transmittance));
    }
}
