#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, std430) readonly buffer A { f16vec4 a[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { f16vec4 b[]; };
layout(set = 0, binding = 2, std430) writeonly buffer C { f16vec4 c[]; };
layout(push_constant) uniform Push { uint n; uint k; } push;

void main() {
    uvec2 g = gl_GlobalInvocationID.xy;
    f16vec4 sum[4];
    [[unroll]] for (int i = 0; i < 4; i++) sum[i] = f16vec4(0.0);
    for (uint k = 0u; k < push.k; k += 4u) {
        f16vec4 rows[4];
        [[unroll]] for (uint i = 0u; i < 4u; i++) rows[i] = b[(k + i) * push.n + g.x];
        [[unroll]] for (uint r = 0u; r < 4u; r++) {
            f16vec4 v = a[((g.y * 4u + r) * push.k + k) / 4u];
            sum[r] += v.x * rows[0] + v.y * rows[1] + v.z * rows[2] + v.w * rows[3];
        }
    }
    [[unroll]] for (uint r = 0u; r < 4u; r++) c[(g.y * 4u + r) * push.n + g.x] = sum[r];
}
