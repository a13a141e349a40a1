#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
layout(constant_id = 0) const int RINGS = 4;
layout(constant_id = 1) const int BLADES = 0;
layout(location = 0) in vec2 inUv;
layout(set = 1, binding = 0) uniform sampler2D scene;
layout(set = 1, binding = 1) uniform sampler2D sceneDepth;
layout(location = 0) out vec4 outColour;

float circle(vec2 uv) {
    float z = linearDepth(textureLod(sceneDepth, uv, 0.0).r);
    return clamp((z - frame.jitter.z) / z * frame.jitter.w, -1.0, 1.0);
}

void main() {
    float centre = circle(inUv);
    vec4 sum = vec4(textureLod(scene, inUv, 0.0).rgb, 1.0);
    for (int ring = 1; ring <= RINGS; ring++) {
        for (int i = 0; i < ring * 6; i++) {
            float a = 6.2831853 * float(i) / float(ring * 6);
            float r = float(ring) / float(RINGS);
            if (BLADES > 0) r *= cos(3.14159 / float(BLADES)) / cos(mod(a, 6.2831853 / float(BLADES)) - 3.14159 / float(BLADES));
            vec2 uv = inUv + vec2(cos(a), sin(a)) * r * 16.0 * frame.viewport.zw;
            float c = circle(uv);
            float w = smoothstep(0.0, 0.2, max(abs(c), c < 0.0 ? abs(c) : abs(centre)) - r + 0.1);
            sum += vec4(textureLod(scene, uv, 0.0).rgb, 1.0) * w;
        }
    }
    outColour = vec4(sum.rgb / sum.w, 1.0);
}
