#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
layout(constant_id = 0) const bool STRETCHED = false;
struct Particle { vec4 positionAge; vec4 velocitySize; };
layout(set = 2, binding = 0, std430) readonly buffer Particles { Particle particles[]; };
layout(location = 0) out vec3 outUvAge;
layout(location = 1) out float outDepth;

void main() {
    Particle p = particles[gl_VertexIndex >> 2];
    vec2 corner = vec2(gl_VertexIndex & 1, (gl_VertexIndex >> 1) & 1) * 2.0 - 1.0;
    vec3 right = vec3(frame.view[0][0], frame.view[1][0], frame.view[2][0]);
    vec3 up = vec3(frame.view[0][1], frame.view[1][1], frame.view[2][1]);
    if (STRETCHED) up = normalize(p.velocitySize.xyz + 1e-4) * (1.0 + length(p.velocitySize.xyz) * 0.1);
    vec3 world = p.positionAge.xyz + (right * corner.x + up * corner.y) * p.velocitySize.w;
    outUvAge = vec3(corner * 0.5 + 0.5, p.positionAge.w);
    gl_Position = frame.viewProjection * vec4(world, 1.0);
    outDepth = gl_Position.w;
}
