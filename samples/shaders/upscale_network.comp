#version 460
#extension GL_EXT_control_flow_attributes : require
// A small convolutional network evaluated per pixel with constant loops: long straight-line code.
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const int CHANNELS = 8;
layout(constant_id = 1) const int LAYERS = 3;
layout(set = 0, binding = 0) uniform sampler2D source;
layout(set = 0, binding = 1, std430) readonly buffer Weights { vec4 weights[]; };
layout(set = 0, binding = 2, rgba8) uniform writeonly image2D result;
layout(push_constant) uniform Push { vec2 texel; } push;

void main() {
    vec2 uv = (vec2(gl_GlobalInvocationID.xy) + 0.5) * push.texel;
    vec4 features[16];
    int w = 0;
    [[unroll]] for (int c = 0; c < CHANNELS; c++) {
        vec4 sum = weights[w++];
        [[unroll]] for (int y = -1; y <= 1; y++)
            [[unroll]] for (int x = -1; x <= 1; x++)
                sum += textureLodOffset(source, uv, 0.0, ivec2(0)).rgba * weights[w++] * float(x * 3 + y + 5);
        features[c] = max(sum, 0.0);
    }
    [[unroll]] for (int layer = 0; layer < LAYERS; layer++) {
        vec4 next[16];
        [[unroll]] for (int o = 0; o < CHANNELS; o++) {
            vec4 sum = weights[w++];
            [[unroll]] for (int i = 0; i < CHANNELS; i++) {
                mat4 m = mat4(weights[w], weights[w + 1], weights[w + 2], weights[w + 3]);
                w += 4;
                sum += m * features[i];
            }
            next[o] = sum / (1.0 + exp(-sum));
        }
        [[unroll]] for (int o = 0; o < CHANNELS; o++) features[o] = next[o];
    }
    vec4 colour = vec4(0.0);
    [[unroll]] for (int i = 0; i < CHANNELS; i++) colour += features[i] * weights[w++];
    imageStore(result, ivec2(gl_GlobalInvocationID.xy), colour);
}
