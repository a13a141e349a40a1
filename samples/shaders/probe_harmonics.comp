#version 460
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform samplerCubeArray probes;
layout(set = 0, binding = 1, std430) writeonly buffer Coefficients { vec4 coefficients[]; };
shared vec4 partial[9][64];

void main() {
    vec4 sum[9];
    for (int i = 0; i < 9; i++) sum[i] = vec4(0.0);
    for (uint s = gl_LocalInvocationIndex; s < 1024u; s += 64u) {
        float z = 1.0 - 2.0 * (float(s) + 0.5) / 1024.0;
        float a = float(s) * 2.39996323;
        vec3 d = vec3(sqrt(1.0 - z * z) * vec2(cos(a), sin(a)), z);
        vec4 c = textureLod(probes, vec4(d, float(gl_WorkGroupID.x)), 0.0);
        float basis[9] = float[](0.282095, 0.488603 * d.y, 0.488603 * d.z, 0.488603 * d.x, 1.092548 * d.x * d.y, 1.092548 * d.y * d.z,
            0.315392 * (3.0 * d.z * d.z - 1.0), 1.092548 * d.x * d.z, 0.546274 * (d.x * d.x - d.y * d.y));
        for (int i = 0; i < 9; i++) sum[i] += c * basis[i];
    }
    for (int i = 0; i < 9; i++) {
        vec4 v = subgroupAdd(sum[i]);
        if (subgroupElect()) partial[i][gl_SubgroupID] = v;
    }
    barrier();
    if (gl_LocalInvocationIndex < 9u) {
        vec4 v = vec4(0.0);
        for (uint s = 0u; s < gl_NumSubgroups; s++) v += partial[gl_LocalInvocationIndex][s];
        coefficients[gl_WorkGroupID.x * 9u + gl_LocalInvocationIndex] = v * 12.5663706 / 1024.0;
    }
}
