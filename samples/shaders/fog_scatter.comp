#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/noise.glsl"
layout(local_size_x = 4, local_size_y = 4, local_size_z = 4) in;
layout(constant_id = 0) const bool NOISE = true;
layout(set = 0, binding = 0, std140) uniform Fog { mat4 inverseViewProjection; mat4 shadowMatrix; vec4 camera; vec4 sun; vec4 wind; };
layout(set = 0, binding = 1) uniform sampler2DShadow shadowMap;
layout(set = 0, binding = 2) uniform sampler3D history;
layout(set = 0, binding = 3, rgba16f) uniform writeonly image3D scattering;

void main() {
    ivec3 size = imageSize(scattering);
    vec3 uvw = (vec3(gl_GlobalInvocationID) + 0.5) / vec3(size);
    vec4 p = inverseViewProjection * vec4(uvw.xy * 2.0 - 1.0, uvw.z * uvw.z, 1.0);
    vec3 world = p.xyz / p.w;
    float density = exp(-max(world.y, 0.0) * 0.1);
    if (NOISE) density *= 0.5 + perlin(world * 0.3 + wind.xyz) + 0.5 * perlin(world * 0.7 - wind.xyz);
    vec4 s = shadowMatrix * vec4(world, 1.0);
    float lit = textureLod(shadowMap, vec3(s.xy * 0.5 + 0.5, s.z), 0.0);
    float mu = dot(normalize(world - camera.xyz), sun.xyz);
    float phase = 0.0796 * 0.75 / pow(1.25 - mu, 1.5);
    vec4 now = vec4(sun.rgb * lit * phase * density, density);
    imageStore(scattering, ivec3(gl_GlobalInvocationID), mix(textureLod(history, uvw, 0.0), now, 0.1));
}
