#version 460
layout(local_size_x = 128) in;
layout(constant_id = 0) const uint MAX_LIGHTS = 128;
struct Light { vec4 positionRadius; vec4 colourIntensity; vec4 directionCone; };
layout(set = 0, binding = 0, std140) uniform View { mat4 view; mat4 inverseProjection; vec4 tile; uint lightCount; };
layout(set = 0, binding = 1, std430) readonly buffer Lights { Light lights[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Clusters { uint words[]; };
shared uint bits[4];

void main() {
    uint cluster = gl_WorkGroupID.x + gl_WorkGroupID.y * 32u + gl_WorkGroupID.z * 576u;
    if (gl_LocalInvocationIndex < 4u) bits[gl_LocalInvocationIndex] = 0u;
    barrier();
    vec2 lowNdc = vec2(gl_WorkGroupID.xy) * tile.xy - 1.0;
    vec2 highNdc = lowNdc + tile.xy;
    float nearZ = exp2(float(gl_WorkGroupID.z) / 3.0);
    float farZ = exp2(float(gl_WorkGroupID.z + 1u) / 3.0);
    vec4 a = inverseProjection * vec4(lowNdc, 1.0, 1.0);
    vec4 b = inverseProjection * vec4(highNdc, 1.0, 1.0);
    vec3 low = min(a.xyz / a.w * nearZ, b.xyz / b.w * nearZ);
    vec3 high = max(a.xyz / a.w * farZ, b.xyz / b.w * farZ);
    for (uint i = gl_LocalInvocationIndex; i < min(lightCount, MAX_LIGHTS); i += 128u) {
        vec3 p = (view * vec4(lights[i].positionRadius.xyz, 1.0)).xyz;
        vec3 d = max(max(low - p, p - high), 0.0);
        if (dot(d, d) < lights[i].positionRadius.w * lights[i].positionRadius.w) atomicOr(bits[i >> 5], 1u << (i & 31u));
    }
    barrier();
    if (gl_LocalInvocationIndex < 4u) words[cluster * 4u + gl_LocalInvocationIndex] = bits[gl_LocalInvocationIndex];
}
