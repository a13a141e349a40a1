#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/noise.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const bool TURBULENCE = false;
layout(constant_id = 1) const bool DEPTH_COLLISION = false;
struct Particle { vec4 positionAge; vec4 velocitySize; };
layout(set = 0, binding = 0, std140) uniform Simulation { mat4 viewProjection; vec4 gravity; float deltaTime; uint count; };
layout(set = 0, binding = 1, std430) buffer Particles { Particle particles[]; };
layout(set = 0, binding = 2, std430) buffer Dead { uint deadCount; uint dead[]; };
layout(set = 0, binding = 3) uniform sampler2D sceneDepth;

void main() {
    uint id = gl_GlobalInvocationID.x;
    if (id >= count) return;
    Particle p = particles[id];
    if (p.positionAge.w >= 1.0) return;
    p.velocitySize.xyz += gravity.xyz * deltaTime;
    if (TURBULENCE) {
        vec3 q = p.positionAge.xyz;
        float e = 0.1;
        vec3 curl;
        curl.x = perlin(q + vec3(0, e, 0)) - perlin(q - vec3(0, e, 0)) - perlin(q + vec3(0, 0, e)) + perlin(q - vec3(0, 0, e));
        curl.y = perlin(q + vec3(0, 0, e)) - perlin(q - vec3(0, 0, e)) - perlin(q + vec3(e, 0, 0)) + perlin(q - vec3(e, 0, 0));
        curl.z = perlin(q + vec3(e, 0, 0)) - perlin(q - vec3(e, 0, 0)) - perlin(q + vec3(0, e, 0)) + perlin(q - vec3(0, e, 0));
        p.velocitySize.xyz += curl * deltaTime / (2.0 * e);
    }
    p.positionAge.xyz += p.velocitySize.xyz * deltaTime;
    if (DEPTH_COLLISION) {
        vec4 c = viewProjection * vec4(p.positionAge.xyz, 1.0);
        vec3 uvz = vec3(c.xy / c.w * 0.5 + 0.5, c.z / c.w);
        if (uvz.z > textureLod(sceneDepth, uvz.xy, 0.0).r) p.velocitySize.xyz = reflect(p.velocitySize.xyz, vec3(0, 1, 0)) * 0.5;
    }
    p.positionAge.w += deltaTime / p.velocitySize.w;
    if (p.positionAge.w >= 1.0) dead[atomicAdd(deadCount, 1u)] = id;
    particles[id] = p;
}
