#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/object.glsl"
layout(constant_id = 0) const uint CASCADE = 0;
layout(location = 0) in vec3 inPosition;
layout(location = 3) in vec2 inUv;
layout(set = 0, binding = 0, std140) uniform Cascades { mat4 lightViewProjection[8]; };
layout(location = 0) out vec2 outUv;

void main() {
    outUv = inUv;
    gl_Position = lightViewProjection[CASCADE] * object.model * vec4(inPosition, 1.0);
}
