#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
#include "include/lights.glsl"
#include "include/brdf.glsl"
layout(constant_id = 0) const bool SHADOWED = true;
layout(input_attachment_index = 0, set = 1, binding = 0) uniform subpassInput gAlbedo;
layout(input_attachment_index = 1, set = 1, binding = 1) uniform subpassInput gNormal;
layout(input_attachment_index = 2, set = 1, binding = 2) uniform subpassInput gMaterial;
layout(input_attachment_index = 3, set = 1, binding = 3) uniform subpassInput gDepth;
layout(location = 0) in vec2 inUv;
layout(location = 0) out vec4 outColour;

void main() {
    vec4 albedo = subpassLoad(gAlbedo);
    vec2 e = subpassLoad(gNormal).rg;
    vec3 n = vec3(e, 1.0 - abs(e.x) - abs(e.y));
    float fold = max(-n.z, 0.0);
    n.xy += vec2(n.x >= 0.0 ? -fold : fold, n.y >= 0.0 ? -fold : fold);
    n = normalize(n);
    vec3 orm = subpassLoad(gMaterial).rgb;
    float depth = subpassLoad(gDepth).r;
    vec3 world = worldFromDepth(inUv, depth);
    vec3 v = normalize(frame.cameraPosition.xyz - world);
    vec3 l = normalize(vec3(0.3, 0.9, 0.2));
    vec3 h = normalize(v + l);
    float nDotL = clamp(dot(n, l), 0.0, 1.0);
    vec3 f = fresnelSchlick(clamp(dot(v, h), 0.0, 1.0), mix(vec3(0.04), albedo.rgb, orm.b));
    vec3 c = (albedo.rgb / PI + f * distributionGGX(clamp(dot(n, h), 0.0, 1.0), orm.g) * visibilitySmith(0.5, nDotL, orm.g)) * nDotL;
    if (SHADOWED) c *= shadowFactor(world, linearDepth(depth), 4);
    outColour = vec4(c * orm.r, 1.0);
}
