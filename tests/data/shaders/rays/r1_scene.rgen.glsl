#version 460
#extension GL_EXT_ray_tracing : require
layout(set = 0, binding = 0) uniform accelerationStructureEXT scene;
layout(set = 0, binding = 1, rgba16f) uniform writeonly image2D target;
layout(location = 0) rayPayloadEXT vec4 color;
void main()
{
    vec2 at = (vec2(gl_LaunchIDEXT.xy) + 0.5) / vec2(gl_LaunchSizeEXT.xy) * 2.0 - 1.0;
    color = vec4(0.0);
    traceRayEXT(scene, gl_RayFlagsNoneEXT, 0xFF, 0, 1, 0, vec3(0.0, 0.0, -2.0), 0.001, normalize(vec3(at, 1.0)), 100.0, 0);
    imageStore(target, ivec2(gl_LaunchIDEXT.xy), color);
}
