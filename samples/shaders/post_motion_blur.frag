#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
layout(constant_id = 0) const int SAMPLES = 12;
layout(location = 0) in vec2 inUv;
layout(set = 1, binding = 0) uniform sampler2D scene;
layout(set = 1, binding = 1) uniform sampler2D sceneDepth;
layout(location = 0) out vec4 outColour;

void main() {
    vec3 world = worldFromDepth(inUv, textureLod(sceneDepth, inUv, 0.0).r);
    vec4 before = frame.previousViewProjection * vec4(world, 1.0);
    vec2 velocity = (inUv - (before.xy / before.w * 0.5 + 0.5)) * 0.5;
    vec3 sum = vec3(0.0);
    for (int i = 0; i < SAMPLES; i++) sum += textureLod(scene, inUv - velocity * (float(i) / float(SAMPLES - 1) - 0.5), 0.0).rgb;
    outColour = vec4(sum / float(SAMPLES), 1.0);
}
