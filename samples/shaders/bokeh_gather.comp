#version 460
#extension GL_EXT_control_flow_attributes : require
// A wide unrolled gather: many texture fetches in flight, heavy for a compiler's scheduler.
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const int RINGS = 4;
layout(set = 0, binding = 0) uniform sampler2D scene;
layout(set = 0, binding = 1) uniform sampler2D circleOfConfusion;
layout(set = 0, binding = 2, rgba16f) uniform writeonly image2D nearField;
layout(set = 0, binding = 3, rgba16f) uniform writeonly image2D farField;
layout(push_constant) uniform Push { vec2 texel; float radius; } push;

void main() {
    vec2 uv = (vec2(gl_GlobalInvocationID.xy) + 0.5) * push.texel;
    float own = textureLod(circleOfConfusion, uv, 0.0).r;
    vec4 nearSum = vec4(0.0), farSum = vec4(0.0);
    [[unroll]] for (int ring = 1; ring <= RINGS; ring++) {
        [[unroll]] for (int i = 0; i < ring * 8; i++) {
            float a = 6.2831853 * (float(i) + float(ring & 1) * 0.5) / float(ring * 8);
            vec2 o = vec2(cos(a), sin(a)) * float(ring) / float(RINGS) * push.radius;
            vec3 c = textureLod(scene, uv + o * push.texel, 0.0).rgb;
            float z = textureLod(circleOfConfusion, uv + o * push.texel, 0.0).r;
            float r = float(ring) / float(RINGS) * push.radius;
            float wn = clamp((-z - r + 2.0) * 0.5, 0.0, 1.0) / max(z * z, 1.0);
            float wf = clamp((min(z, own) - r + 2.0) * 0.5, 0.0, 1.0) / max(z * z, 1.0);
            nearSum += vec4(c, 1.0) * wn;
            farSum += vec4(c, 1.0) * wf;
        }
    }
    imageStore(nearField, ivec2(gl_GlobalInvocationID.xy), vec4(nearSum.rgb / max(nearSum.a, 1e-4), clamp(nearSum.a / float(RINGS * RINGS * 4), 0.0, 1.0)));
    imageStore(farField, ivec2(gl_GlobalInvocationID.xy), farSum / max(farSum.a, 1e-4));
}
