#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
layout(constant_id = 0) const int MARCH_STEPS = 32;
layout(constant_id = 1) const int REFINE_STEPS = 6;
layout(location = 0) in vec2 inUv;
layout(set = 1, binding = 0) uniform sampler2D scene;
layout(set = 1, binding = 1) uniform sampler2D sceneDepth;
layout(set = 1, binding = 2) uniform sampler2D normals;
layout(location = 0) out vec4 outColour;

vec3 project(vec3 p) {
    vec4 c = frame.viewProjection * vec4(p, 1.0);
    return vec3(c.xy / c.w * 0.5 + 0.5, c.z / c.w);
}

void main() {
    vec3 p = worldFromDepth(inUv, textureLod(sceneDepth, inUv, 0.0).r);
    vec3 n = normalize(textureLod(normals, inUv, 0.0).xyz * 2.0 - 1.0);
    vec3 r = reflect(normalize(p - frame.cameraPosition.xyz), n);
    float stride = 0.2;
    vec3 hit = p + n * 0.02;
    bool found = false;
    for (int i = 0; i < MARCH_STEPS && !found; i++) {
        hit += r * stride;
        vec3 s = project(hit);
        found = s.z > textureLod(sceneDepth, s.xy, 0.0).r;
        stride *= 1.1;
    }
    for (int i = 0; i < REFINE_STEPS && found; i++) {
        stride *= 0.5;
        vec3 s = project(hit);
        hit += r * (s.z > textureLod(sceneDepth, s.xy, 0.0).r ? -stride : stride);
    }
    vec2 uv = project(hit).xy;
    float edge = smoothstep(0.0, 0.1, min(min(uv.x, 1.0 - uv.x), min(uv.y, 1.0 - uv.y)));
    outColour = found ? vec4(textureLod(scene, uv, 0.0).rgb, edge) : vec4(0.0);
}
