#version 460
layout(local_size_x = 8, local_size_y = 8, local_size_z = 4) in;
layout(constant_id = 0) const bool MACCORMACK = false;
layout(set = 0, binding = 0) uniform sampler3D velocity;
layout(set = 0, binding = 1) uniform sampler3D field;
layout(set = 0, binding = 2, rgba16f) uniform writeonly image3D result;
layout(push_constant) uniform Push { vec3 texel; float deltaTime; } push;

void main() {
    vec3 uv = (vec3(gl_GlobalInvocationID) + 0.5) * push.texel;
    vec3 back = uv - textureLod(velocity, uv, 0.0).xyz * push.deltaTime;
    vec4 v = textureLod(field, back, 0.0);
    if (MACCORMACK) {
        vec3 forward = back + textureLod(velocity, back, 0.0).xyz * push.deltaTime;
        v += 0.5 * (textureLod(field, uv, 0.0) - textureLod(field, forward, 0.0));
    }
    imageStore(result, ivec3(gl_GlobalInvocationID), v);
}
