#version 460
#extension GL_EXT_ray_query : require
layout(local_size_x = 8, local_size_y = 4) in;
layout(set = 0, binding = 0) uniform accelerationStructureEXT scene;
layout(set = 0, binding = 1) uniform sampler2D depth;
layout(set = 0, binding = 2, r8) uniform writeonly image2D mask;
layout(push_constant) uniform Push { mat4 inverseViewProjection; vec4 light; vec2 texel; } push;

void main() {
    vec2 uv = (vec2(gl_GlobalInvocationID.xy) + 0.5) * push.texel;
    vec4 p = push.inverseViewProjection * vec4(uv * 2.0 - 1.0, textureLod(depth, uv, 0.0).r, 1.0);
    rayQueryEXT query;
    rayQueryInitializeEXT(query, scene, gl_RayFlagsTerminateOnFirstHitEXT | gl_RayFlagsOpaqueEXT, 0xff, p.xyz / p.w, 0.01, push.light.xyz, push.light.w);
    while (rayQueryProceedEXT(query)) {}
    bool lit = rayQueryGetIntersectionTypeEXT(query, true) == gl_RayQueryCommittedIntersectionNoneEXT;
    imageStore(mask, ivec2(gl_GlobalInvocationID.xy), vec4(lit ? 1.0 : 0.0));
}
