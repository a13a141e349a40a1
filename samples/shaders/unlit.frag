#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/object.glsl"
layout(location = 3) in vec2 inUv;
layout(location = 4) in vec4 inColour;
layout(set = 1, binding = 1) uniform sampler2D albedoMap;
layout(location = 0) out vec4 outColour;

void main() {
    outColour = texture(albedoMap, inUv) * inColour * (1.0 - object.lodFade);
}
