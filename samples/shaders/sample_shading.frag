#version 460
layout(location = 0) sample in vec2 inUv;
layout(set = 0, binding = 0) uniform sampler2D source;
layout(location = 0) out vec4 outColour;

void main() {
    outColour = texture(source, inUv + gl_SamplePosition * 0.001);
    gl_SampleMask[0] = 1 << gl_SampleID;
}
