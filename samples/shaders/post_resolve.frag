#version 460
layout(constant_id = 0) const int SAMPLES = 4;
layout(set = 0, binding = 0) uniform sampler2DMS source;
layout(location = 0) in vec2 inUv;
layout(location = 0) out vec4 outColour;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    vec4 sum = vec4(0.0);
    for (int i = 0; i < SAMPLES; i++) {
        vec4 c = texelFetch(source, at, i);
        sum += vec4(c.rgb, 1.0) / (1.0 + max(c.r, max(c.g, c.b)));
    }
    outColour = sum / sum.w;
}
