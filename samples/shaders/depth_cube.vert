#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/object.glsl"
layout(location = 0) in vec3 inPosition;

void main() {
    gl_Position = object.model * vec4(inPosition, 1.0);
}
