#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_ray_tracing : require
#include "include/rays.glsl"
layout(location = 0) rayPayloadInEXT Payload payload;

void main() {
    payload.radiance = mix(vec3(0.8, 0.85, 0.9), vec3(0.2, 0.4, 0.9), clamp(gl_WorldRayDirectionEXT.y, 0.0, 1.0));
    payload.distance = -1.0;
}
