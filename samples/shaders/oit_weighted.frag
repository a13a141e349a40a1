#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/object.glsl"
layout(location = 3) in vec2 inUv;
layout(location = 4) in vec4 inColour;
layout(set = 1, binding = 1) uniform sampler2D albedoMap;
layout(location = 0) out vec4 outAccumulated;
layout(location = 1) out float outRevealage;

void main() {
    vec4 c = texture(albedoMap, inUv) * inColour;
    float w = clamp(pow(min(1.0, c.a * 10.0) + 0.01, 3.0) * 1e8 * pow(1.0 - gl_FragCoord.z * 0.9, 3.0), 1e-2, 3e3);
    outAccumulated = vec4(c.rgb * c.a, c.a) * w * (1.0 - object.lodFade);
    outRevealage = c.a;
}
