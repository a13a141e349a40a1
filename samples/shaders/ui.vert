#version 460
layout(location = 0) in vec2 inPosition;
layout(location = 1) in vec2 inUv;
layout(location = 2) in vec4 inColour;
layout(push_constant) uniform Ui { vec2 scale; vec2 offset; } ui;
layout(location = 0) out vec2 outUv;
layout(location = 1) out vec4 outColour;

void main() {
    outUv = inUv;
    outColour = inColour;
    gl_Position = vec4(inPosition * ui.scale + ui.offset, 0.0, 1.0);
}
