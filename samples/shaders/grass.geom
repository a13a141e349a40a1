#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
#include "include/noise.glsl"
layout(constant_id = 0) const int SEGMENTS = 3;
layout(points) in;
layout(triangle_strip, max_vertices = 16) out;
layout(location = 0) in float inHeight[];
layout(location = 0) out vec4 outColour;

void main() {
    vec3 base = gl_in[0].gl_Position.xyz;
    float angle = hashFloat(floatBitsToUint(base.x) ^ floatBitsToUint(base.z)) * 6.2831853;
    vec3 side = vec3(cos(angle), 0.0, sin(angle)) * 0.03;
    float bend = perlin(base * 0.2 + frame.time * 0.5) * 0.4;
    for (int i = 0; i <= SEGMENTS; i++) {
        float t = float(i) / float(SEGMENTS);
        vec3 p = base + vec3(bend * t * t, t * inHeight[0], bend * t * t * 0.5);
        outColour = vec4(mix(vec3(0.05, 0.2, 0.02), vec3(0.4, 0.6, 0.1), t), 1.0);
        gl_Position = frame.viewProjection * vec4(p - side * (1.0 - t), 1.0);
        EmitVertex();
        outColour = vec4(mix(vec3(0.05, 0.2, 0.02), vec3(0.4, 0.6, 0.1), t), 1.0);
        gl_Position = frame.viewProjection * vec4(p + side * (1.0 - t), 1.0);
        EmitVertex();
    }
    EndPrimitive();
}
