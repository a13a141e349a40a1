#version 460
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const int TRANSFER = 0; // 0 linear, 1 sRGB, 2 perceptual quantizer
layout(set = 0, binding = 0) uniform texture2D planes[3];
layout(set = 0, binding = 1) uniform sampler clampLinear;
layout(set = 0, binding = 2, rgba8) uniform writeonly image2D result;
layout(set = 0, binding = 3) uniform samplerBuffer curve;

void main() {
    vec2 uv = (vec2(gl_GlobalInvocationID.xy) + 0.5) / vec2(imageSize(result));
    float y = textureLod(sampler2D(planes[0], clampLinear), uv, 0.0).r;
    float u = textureLod(sampler2D(planes[1], clampLinear), uv, 0.0).r - 0.5;
    float v = textureLod(sampler2D(planes[2], clampLinear), uv, 0.0).r - 0.5;
    vec3 c = vec3(y + 1.5748 * v, y - 0.1873 * u - 0.4681 * v, y + 1.8556 * u);
    if (TRANSFER == 1) c = mix(c / 12.92, pow((max(c, 0.0) + 0.055) / 1.055, vec3(2.4)), greaterThan(c, vec3(0.04045)));
    if (TRANSFER == 2) c = vec3(texelFetch(curve, int(c.r * 1023.0)).r, texelFetch(curve, int(c.g * 1023.0)).r, texelFetch(curve, int(c.b * 1023.0)).r);
    imageStore(result, ivec2(gl_GlobalInvocationID.xy), vec4(c, 1.0));
}
