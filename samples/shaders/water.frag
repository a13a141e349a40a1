#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
#include "include/lights.glsl"
layout(constant_id = 0) const bool FOAM = true;
layout(location = 0) in vec3 inWorld;
layout(location = 1) in vec3 inNormal;
layout(set = 1, binding = 1) uniform sampler2D sceneColour;
layout(set = 1, binding = 2) uniform sampler2D sceneDepth;
layout(location = 0) out vec4 outColour;

void main() {
    vec3 n = normalize(inNormal);
    vec3 v = normalize(frame.cameraPosition.xyz - inWorld);
    vec2 uv = gl_FragCoord.xy * frame.viewport.zw;
    float below = linearDepth(texture(sceneDepth, uv).r) - linearDepth(gl_FragCoord.z);
    vec3 refracted = texture(sceneColour, uv + n.xz * 0.03 * clamp(below, 0.0, 1.0)).rgb * exp(-below * vec3(0.5, 0.12, 0.08));
    vec3 reflected = textureLod(environmentMap, reflect(-v, n), 0.0).rgb;
    float f = 0.02 + 0.98 * pow(1.0 - clamp(dot(n, v), 0.0, 1.0), 5.0);
    vec3 colour = mix(refracted, reflected, f);
    if (FOAM) colour += smoothstep(0.4, 0.0, below) * 0.6;
    outColour = vec4(colour, 1.0);
}
