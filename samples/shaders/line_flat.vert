#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
layout(location = 0) in vec3 inPosition;
layout(location = 1) in vec4 inColour;
layout(location = 0) flat out vec4 outColour;

void main() {
    outColour = inColour;
    gl_Position = frame.viewProjection * vec4(inPosition, 1.0);
}
