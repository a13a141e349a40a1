#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/object.glsl"
layout(constant_id = 0) const uint CASCADE = 0;
layout(location = 0) in vec3 inPosition;
layout(location = 3) in vec2 inUv;
layout(location = 5) in uvec4 inBones;
layout(location = 6) in vec4 inWeights;
layout(set = 0, binding = 0, std140) uniform Cascades { mat4 lightViewProjection[8]; };
layout(set = 2, binding = 0, std430) readonly buffer Bones { mat4 bones[]; };
layout(location = 0) out vec2 outUv;

void main() {
    mat4 skin = bones[inBones.x] * inWeights.x + bones[inBones.y] * inWeights.y + bones[inBones.z] * inWeights.z + bones[inBones.w] * inWeights.w;
    outUv = inUv;
    gl_Position = lightViewProjection[CASCADE] * object.model * skin * vec4(inPosition, 1.0);
}
