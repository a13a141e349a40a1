#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
#include "include/object.glsl"
layout(constant_id = 0) const bool INSTANCED = false;
layout(constant_id = 1) const bool WIND = false;
layout(constant_id = 2) const bool VERTEX_COLOUR = false;

layout(location = 0) in vec3 inPosition;
layout(location = 1) in vec3 inNormal;
layout(location = 2) in vec4 inTangent;
layout(location = 3) in vec2 inUv;
layout(location = 4) in vec4 inColour;

layout(set = 2, binding = 0, std430) readonly buffer Instances { mat4 transforms[]; };

layout(location = 0) out vec3 outWorld;
layout(location = 1) out vec3 outNormal;
layout(location = 2) out vec4 outTangent;
layout(location = 3) out vec2 outUv;
layout(location = 4) out vec4 outColour;

void main() {
    mat4 model = object.model;
    if (INSTANCED) model = model * transforms[object.instanceBase + gl_InstanceIndex];
    vec3 p = inPosition;
    if (WIND) p.xz += sin(frame.time * vec2(1.3, 0.9) + p.yx * 4.0) * 0.05 * p.y;
    vec4 world = model * vec4(p, 1.0);
    outWorld = world.xyz;
    outNormal = mat3(model) * inNormal;
    outTangent = vec4(mat3(model) * inTangent.xyz, inTangent.w);
    outUv = inUv;
    outColour = VERTEX_COLOUR ? inColour : vec4(1.0);
    gl_Position = frame.viewProjection * world;
}
