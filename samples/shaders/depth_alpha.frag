#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/object.glsl"
layout(location = 0) in vec2 inUv;
layout(set = 1, binding = 1) uniform sampler2D albedoMap;

void main() {
    if (texture(albedoMap, inUv).a < object.alphaCutoff) discard;
}
