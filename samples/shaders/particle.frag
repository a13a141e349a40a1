#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
layout(constant_id = 0) const bool SOFT = true;
layout(constant_id = 1) const int FLIPBOOK = 8;
layout(location = 0) in vec3 inUvAge;
layout(location = 1) in float inDepth;
layout(set = 1, binding = 1) uniform sampler2D atlas;
layout(set = 1, binding = 2) uniform sampler2D sceneDepth;
layout(location = 0) out vec4 outColour;

vec4 cell(float index) {
    vec2 origin = vec2(mod(index, float(FLIPBOOK)), floor(index / float(FLIPBOOK)));
    return texture(atlas, (origin + inUvAge.xy) / float(FLIPBOOK));
}

void main() {
    float at = inUvAge.z * float(FLIPBOOK * FLIPBOOK - 1);
    vec4 colour = mix(cell(floor(at)), cell(ceil(at)), fract(at));
    if (SOFT) colour.a *= clamp(linearDepth(texture(sceneDepth, gl_FragCoord.xy * frame.viewport.zw).r) - inDepth, 0.0, 1.0);
    outColour = vec4(colour.rgb * colour.a, colour.a);
}
