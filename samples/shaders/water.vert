#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
layout(constant_id = 0) const int WAVES = 8;
layout(location = 0) in vec2 inPosition;
layout(location = 0) out vec3 outWorld;
layout(location = 1) out vec3 outNormal;

void main() {
    vec3 p = vec3(inPosition.x, 0.0, inPosition.y);
    vec3 n = vec3(0.0, 1.0, 0.0);
    for (int i = 0; i < WAVES; i++) {
        float angle = float(i) * 1.7;
        vec2 d = vec2(cos(angle), sin(angle));
        float k = 0.4 * pow(1.35, float(i));
        float a = 0.6 * pow(0.7, float(i));
        float phase = k * dot(d, inPosition) - sqrt(9.81 * k) * frame.time;
        p.xz += d * a * cos(phase) * 0.5;
        p.y += a * sin(phase);
        n -= vec3(d.x * k * a * cos(phase), k * a * sin(phase) * 0.5, d.y * k * a * cos(phase));
    }
    outWorld = p;
    outNormal = n;
    gl_Position = frame.viewProjection * vec4(p, 1.0);
}
