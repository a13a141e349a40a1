#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
layout(constant_id = 0) const int STEPS = 16;
layout(location = 0) in vec2 inUv;
layout(location = 0) out vec4 outColour;

void main() {
    vec3 far = worldFromDepth(inUv, 1.0);
    vec3 dir = normalize(far - frame.cameraPosition.xyz);
    vec3 sun = normalize(vec3(0.3, 0.4, 0.2));
    float mu = dot(dir, sun);
    float rayleigh = 0.0596831 * (1.0 + mu * mu);
    float mie = 0.1193662 * 0.4224 * (1.0 + mu * mu) / (2.5776 * pow(max(1.5776 - 1.52 * mu, 1e-3), 1.5));
    vec3 sum = vec3(0.0);
    vec3 optical = vec3(0.0);
    float ds = 60.0 / (max(dir.y, 0.0) * 8.0 + 1.0) / float(STEPS);
    for (int i = 0; i < STEPS; i++) {
        float h = (float(i) + 0.5) * ds * max(dir.y, 0.02);
        vec2 density = exp(-h / vec2(8.0, 1.2)) * ds;
        optical += density.x * vec3(0.0058, 0.0135, 0.0331) + density.y * 0.021;
        sum += exp(-optical) * (density.x * rayleigh * vec3(0.0058, 0.0135, 0.0331) + density.y * mie * 0.021);
    }
    outColour = vec4(sum * 20.0, 1.0);
}
