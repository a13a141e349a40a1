#version 460
#extension GL_ARB_shader_stencil_export : require
layout(location = 0) in vec2 inUv;
layout(set = 0, binding = 0) uniform usampler2D mask;

void main() {
    gl_FragStencilRefARB = int(texture(mask, inUv).r);
}
