#version 460
layout(location = 0) in vec4 inColour;
layout(location = 0) out vec4 outColour;

void main() {
    vec2 d = gl_PointCoord * 2.0 - 1.0;
    outColour = inColour * clamp(1.0 - dot(d, d), 0.0, 1.0);
}
