#version 460
layout(location = 0) in vec2 inUv;
layout(set = 0, binding = 0) uniform sampler2D source;
layout(push_constant) uniform Push { vec2 texel; float radius; } push;
layout(location = 0) out vec4 outColour;

void main() {
    vec4 sum = vec4(0.0);
    for (int y = -1; y <= 1; y++)
        for (int x = -1; x <= 1; x++)
            sum += texture(source, inUv + vec2(x, y) * push.texel * push.radius) * float((2 - abs(x)) * (2 - abs(y)));
    outColour = sum / 16.0;
}
