#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
#include "include/noise.glsl"
layout(constant_id = 0) const int LAYERS = 4;
layout(constant_id = 1) const bool TRIPLANAR = false;
layout(location = 0) in vec3 inWorld;
layout(location = 1) in vec3 inNormal;
layout(location = 2) in vec2 inUv;
layout(set = 1, binding = 2) uniform sampler2DArray layerMap;
layout(set = 1, binding = 3) uniform sampler2D splatMap;
layout(location = 0) out vec4 outColour;

vec3 layerColour(int layer) {
    if (!TRIPLANAR) return texture(layerMap, vec3(inUv, layer)).rgb;
    vec3 w = pow(abs(inNormal), vec3(4.0));
    w /= w.x + w.y + w.z;
    return texture(layerMap, vec3(inWorld.yz, layer)).rgb * w.x + texture(layerMap, vec3(inWorld.xz, layer)).rgb * w.y
        + texture(layerMap, vec3(inWorld.xy, layer)).rgb * w.z;
}

void main() {
    vec4 splat = texture(splatMap, inUv / 64.0);
    vec3 colour = vec3(0.0);
    for (int i = 0; i < LAYERS; i++) colour += layerColour(i) * splat[i & 3] * (1.0 + 0.2 * perlin(inWorld * float(i + 1)));
    float light = clamp(dot(normalize(inNormal), normalize(vec3(0.3, 0.9, 0.2))), 0.0, 1.0);
    float fog = exp(-distance(inWorld, frame.cameraPosition.xyz) * 0.005);
    outColour = vec4(mix(vec3(0.6, 0.7, 0.8), colour * (light + 0.2), fog), 1.0);
}
