#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
layout(location = 0) in vec4 inPositionAge;
layout(location = 1) in vec4 inColour;
layout(location = 0) out vec4 outColour;

void main() {
    gl_Position = frame.viewProjection * vec4(inPositionAge.xyz, 1.0);
    gl_PointSize = clamp(64.0 / gl_Position.w, 1.0, 16.0);
    outColour = inColour * (1.0 - inPositionAge.w);
}
