#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
#include "include/object.glsl"
layout(location = 0) in vec3 inWorld;
layout(set = 1, binding = 1) uniform sampler2D decalMap;
layout(set = 1, binding = 2) uniform sampler2D sceneDepth;
layout(location = 0) out vec4 outColour;

void main() {
    vec2 uv = gl_FragCoord.xy * frame.viewport.zw;
    vec3 world = worldFromDepth(uv, texture(sceneDepth, uv).r);
    vec3 local = (inverse(object.model) * vec4(world, 1.0)).xyz;
    if (any(greaterThan(abs(local), vec3(0.5)))) discard;
    outColour = texture(decalMap, local.xz + 0.5) * (1.0 - abs(local.y) * 2.0) + vec4(inWorld * 0.0, 0.0);
}
