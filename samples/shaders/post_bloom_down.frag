#version 460
layout(constant_id = 0) const bool KARIS = false;
layout(location = 0) in vec2 inUv;
layout(set = 0, binding = 0) uniform sampler2D source;
layout(push_constant) uniform Push { vec2 texel; float threshold; } push;
layout(location = 0) out vec4 outColour;

vec3 tap(float x, float y) {
    vec3 c = texture(source, inUv + vec2(x, y) * push.texel).rgb;
    return KARIS ? c / (1.0 + max(c.r, max(c.g, c.b))) : c;
}

void main() {
    vec3 c = tap(0.0, 0.0) * 0.125;
    c += (tap(-1.0, -1.0) + tap(1.0, -1.0) + tap(-1.0, 1.0) + tap(1.0, 1.0)) * 0.125;
    c += (tap(-2.0, -2.0) + tap(2.0, -2.0) + tap(-2.0, 2.0) + tap(2.0, 2.0)) * 0.03125;
    c += (tap(0.0, -2.0) + tap(-2.0, 0.0) + tap(2.0, 0.0) + tap(0.0, 2.0)) * 0.0625;
    outColour = vec4(max(c - push.threshold, 0.0), 1.0);
}
