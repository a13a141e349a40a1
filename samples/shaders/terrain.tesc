#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
layout(constant_id = 0) const float TARGET_PIXELS = 12.0;
layout(vertices = 4) out;
layout(location = 0) in vec2 inPatch[];
layout(location = 0) out vec2 outPatch[];

float level(vec4 a, vec4 b) {
    vec4 centre = frame.viewProjection * vec4((a.xyz + b.xyz) * 0.5, 1.0);
    float size = distance(a.xyz, b.xyz) * frame.projection[1][1] * frame.viewport.y / max(abs(centre.w), 1e-3);
    return clamp(size / TARGET_PIXELS, 1.0, 64.0);
}

void main() {
    outPatch[gl_InvocationID] = inPatch[gl_InvocationID];
    gl_out[gl_InvocationID].gl_Position = gl_in[gl_InvocationID].gl_Position;
    if (gl_InvocationID == 0) {
        gl_TessLevelOuter[0] = level(gl_in[3].gl_Position, gl_in[0].gl_Position);
        gl_TessLevelOuter[1] = level(gl_in[0].gl_Position, gl_in[1].gl_Position);
        gl_TessLevelOuter[2] = level(gl_in[1].gl_Position, gl_in[2].gl_Position);
        gl_TessLevelOuter[3] = level(gl_in[2].gl_Position, gl_in[3].gl_Position);
        gl_TessLevelInner[0] = max(gl_TessLevelOuter[1], gl_TessLevelOuter[3]);
        gl_TessLevelInner[1] = max(gl_TessLevelOuter[0], gl_TessLevelOuter[2]);
    }
}
