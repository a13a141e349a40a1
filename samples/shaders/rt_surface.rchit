#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_ray_tracing : require
#include "include/rays.glsl"
layout(constant_id = 0) const bool SHADOWS = true;
layout(set = 0, binding = 0) uniform accelerationStructureEXT scene;
layout(set = 0, binding = 2, std430) readonly buffer Normals { vec4 normals[]; };
layout(location = 0) rayPayloadInEXT Payload payload;
layout(location = 1) rayPayloadEXT float visibility;
hitAttributeEXT vec2 barycentric;

void main() {
    uint base = gl_PrimitiveID * 3;
    vec3 n = normals[base].xyz * (1.0 - barycentric.x - barycentric.y) + normals[base + 1].xyz * barycentric.x + normals[base + 2].xyz * barycentric.y;
    n = normalize(mat3(gl_ObjectToWorldEXT) * n);
    vec3 l = normalize(vec3(0.3, 0.9, 0.2));
    vec3 p = gl_WorldRayOriginEXT + gl_WorldRayDirectionEXT * gl_HitTEXT;
    visibility = 1.0;
    if (SHADOWS) {
        visibility = 0.0;
        traceRayEXT(scene, gl_RayFlagsTerminateOnFirstHitEXT | gl_RayFlagsSkipClosestHitShaderEXT, 0xff, 0, 1, 1, p + n * 1e-3, 1e-3, l, 1e3, 1);
    }
    payload.radiance = vec3(0.7) * max(dot(n, l), 0.0) * visibility;
    payload.distance = gl_HitTEXT;
    payload.normal = n;
}
