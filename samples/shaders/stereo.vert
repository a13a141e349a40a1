#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_multiview : require
#include "include/frame.glsl"
#include "include/object.glsl"
layout(location = 0) in vec3 inPosition;
layout(location = 1) in vec3 inNormal;
layout(location = 2) in vec4 inTangent;
layout(location = 3) in vec2 inUv;
layout(location = 4) in vec4 inColour;
layout(location = 0) out vec3 outWorld;
layout(location = 1) out vec3 outNormal;
layout(location = 2) out vec4 outTangent;
layout(location = 3) out vec2 outUv;
layout(location = 4) out vec4 outColour;

void main() {
    vec4 world = object.model * vec4(inPosition, 1.0);
    world.x += (float(gl_ViewIndex) - 0.5) * 0.064;
    outWorld = world.xyz;
    outNormal = mat3(object.model) * inNormal;
    outTangent = inTangent;
    outUv = inUv;
    outColour = inColour;
    gl_Position = frame.viewProjection * world;
}
