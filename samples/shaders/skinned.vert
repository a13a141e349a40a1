#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
#include "include/object.glsl"
layout(constant_id = 0) const uint BONES_PER_VERTEX = 4;
layout(constant_id = 1) const bool DUAL_QUATERNION = false;

layout(location = 0) in vec3 inPosition;
layout(location = 1) in vec3 inNormal;
layout(location = 2) in vec4 inTangent;
layout(location = 3) in vec2 inUv;
layout(location = 5) in uvec4 inBones;
layout(location = 6) in vec4 inWeights;

layout(set = 2, binding = 0, std430) readonly buffer Bones { mat4 bones[]; };

layout(location = 0) out vec3 outWorld;
layout(location = 1) out vec3 outNormal;
layout(location = 2) out vec4 outTangent;
layout(location = 3) out vec2 outUv;
layout(location = 4) out vec4 outColour;

vec3 rotate(vec4 q, vec3 v) {
    return v + 2.0 * cross(q.xyz, cross(q.xyz, v) + q.w * v);
}

void main() {
    vec3 p = vec3(0.0);
    vec3 n = vec3(0.0);
    vec3 t = vec3(0.0);
    if (DUAL_QUATERNION) {
        vec4 real = vec4(0.0);
        vec4 dual = vec4(0.0);
        for (uint i = 0; i < BONES_PER_VERTEX; i++) {
            mat4 b = bones[object.instanceBase + inBones[i]];
            float sign = dot(b[0], bones[object.instanceBase + inBones[0]][0]) < 0.0 ? -1.0 : 1.0;
            real += b[0] * inWeights[i] * sign;
            dual += b[1] * inWeights[i] * sign;
        }
        float inverse = inversesqrt(max(dot(real, real), 1e-8));
        real *= inverse;
        dual *= inverse;
        vec3 offset = 2.0 * (real.w * dual.xyz - dual.w * real.xyz + cross(real.xyz, dual.xyz));
        p = rotate(real, inPosition) + offset;
        n = rotate(real, inNormal);
        t = rotate(real, inTangent.xyz);
    } else {
        for (uint i = 0; i < BONES_PER_VERTEX; i++) {
            mat4 b = bones[object.instanceBase + inBones[i]];
            p += (b * vec4(inPosition, 1.0)).xyz * inWeights[i];
            n += mat3(b) * inNormal * inWeights[i];
            t += mat3(b) * inTangent.xyz * inWeights[i];
        }
    }
    vec4 world = object.model * vec4(p, 1.0);
    outWorld = world.xyz;
    outNormal = mat3(object.model) * n;
    outTangent = vec4(mat3(object.model) * t, inTangent.w);
    outUv = inUv;
    outColour = vec4(1.0);
    gl_Position = frame.viewProjection * world;
}
