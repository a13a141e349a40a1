#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
#include "include/noise.glsl"
layout(constant_id = 0) const int OCTAVES = 4;
layout(constant_id = 1) const bool HEIGHT_MAP = true;
layout(quads, fractional_odd_spacing, ccw) in;
layout(location = 0) in vec2 inPatch[];
layout(set = 1, binding = 1) uniform sampler2D heightMap;
layout(location = 0) out vec3 outWorld;
layout(location = 1) out vec3 outNormal;
layout(location = 2) out vec2 outUv;

float height(vec2 p) {
    float h = HEIGHT_MAP ? textureLod(heightMap, p / 64.0, 0.0).r * 40.0 : 0.0;
    float a = 4.0;
    for (int i = 0; i < OCTAVES; i++) {
        h += perlin(vec3(p, float(i))) * a;
        p = p * 2.03 + 7.1;
        a *= 0.5;
    }
    return h;
}

void main() {
    vec2 p = mix(mix(inPatch[0], inPatch[1], gl_TessCoord.x), mix(inPatch[3], inPatch[2], gl_TessCoord.x), gl_TessCoord.y);
    float h = height(p);
    outNormal = normalize(vec3(h - height(p + vec2(0.1, 0.0)), 0.1, h - height(p + vec2(0.0, 0.1))));
    outWorld = vec3(p.x, h, p.y);
    outUv = p;
    gl_Position = frame.viewProjection * vec4(outWorld, 1.0);
}
