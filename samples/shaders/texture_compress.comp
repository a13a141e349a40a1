#version 460
#extension GL_EXT_control_flow_attributes : require
// A block compressor that tries several end point refinements per block.
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const int REFINEMENTS = 2;
layout(constant_id = 1) const bool ALPHA = false;
layout(set = 0, binding = 0) uniform sampler2D source;
layout(set = 0, binding = 1, std430) writeonly buffer Blocks { uvec4 blocks[]; };
layout(push_constant) uniform Push { uvec2 size; } push;

uint pack565(vec3 c) {
    uvec3 v = uvec3(round(clamp(c, 0.0, 1.0) * vec3(31.0, 63.0, 31.0)));
    return (v.r << 11) | (v.g << 5) | v.b;
}

void main() {
    uvec2 block = gl_GlobalInvocationID.xy;
    if (any(greaterThanEqual(block * 4u, push.size))) return;
    vec4 texel[16];
    vec3 mean = vec3(0.0);
    [[unroll]] for (int i = 0; i < 16; i++) {
        texel[i] = texelFetch(source, ivec2(block * 4u) + ivec2(i & 3, i >> 2), 0);
        mean += texel[i].rgb / 16.0;
    }
    mat3 covariance = mat3(0.0);
    [[unroll]] for (int i = 0; i < 16; i++) covariance += outerProduct(texel[i].rgb - mean, texel[i].rgb - mean);
    vec3 axis = vec3(0.57735);
    [[unroll]] for (int i = 0; i < 6; i++) axis = normalize(covariance * axis + 1e-6);
    float low = 1e9, high = -1e9;
    [[unroll]] for (int i = 0; i < 16; i++) {
        float d = dot(texel[i].rgb - mean, axis);
        low = min(low, d);
        high = max(high, d);
    }
    vec3 e0 = mean + axis * high, e1 = mean + axis * low;
    uint indices = 0u;
    [[unroll]] for (int r = 0; r <= REFINEMENTS; r++) {
        vec3 d = e1 - e0;
        float scale = 3.0 / max(dot(d, d), 1e-6);
        float aa = 0.0, ab = 0.0, bb = 0.0;
        vec3 ax = vec3(0.0), bx = vec3(0.0);
        indices = 0u;
        [[unroll]] for (int i = 0; i < 16; i++) {
            float q = clamp(round(dot(texel[i].rgb - e0, d) * scale), 0.0, 3.0);
            uint code = q < 0.5 ? 0u : q < 1.5 ? 2u : q < 2.5 ? 3u : 1u;
            indices |= code << (2 * i);
            float b = q / 3.0, a = 1.0 - b;
            aa += a * a; ab += a * b; bb += b * b;
            ax += a * texel[i].rgb; bx += b * texel[i].rgb;
        }
        float det = aa * bb - ab * ab;
        if (abs(det) > 1e-5) {
            e0 = clamp((ax * bb - bx * ab) / det, 0.0, 1.0);
            e1 = clamp((bx * aa - ax * ab) / det, 0.0, 1.0);
        }
    }
    uvec2 alpha = uvec2(0u);
    if (ALPHA) {
        float a0 = 0.0, a1 = 1.0;
        [[unroll]] for (int i = 0; i < 16; i++) { a0 = max(a0, texel[i].a); a1 = min(a1, texel[i].a); }
        alpha.x = uint(a0 * 255.0) | (uint(a1 * 255.0) << 8);
        [[unroll]] for (int i = 0; i < 16; i++) {
            uint code = uint(round((a0 - texel[i].a) / max(a0 - a1, 1e-4) * 7.0));
            code = code == 0u ? 0u : code == 7u ? 1u : code + 1u;
            if (i < 5) alpha.x |= code << (16 + 3 * i);
            else alpha.y |= code << (3 * (i - 5)) & 0xffffffffu;
        }
    }
    blocks[block.y * (push.size.x / 4u) + block.x] = uvec4(alpha, pack565(e0) | (pack565(e1) << 16), indices);
}
