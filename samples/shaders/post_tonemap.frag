#version 460
layout(constant_id = 0) const int OPERATOR = 0; // 0 Reinhard, 1 filmic, 2 ACES fit, 3 AgX-like, 4 PQ output
layout(constant_id = 1) const bool GRADE = false;
layout(constant_id = 2) const bool GRAIN = false;
layout(location = 0) in vec2 inUv;
layout(set = 0, binding = 0) uniform sampler2D scene;
layout(set = 0, binding = 1) uniform sampler2D bloom;
layout(set = 0, binding = 2) uniform sampler3D gradeTable;
layout(set = 0, binding = 3, std430) readonly buffer Exposure { float exposure; };
layout(location = 0) out vec4 outColour;

vec3 filmic(vec3 x) {
    return ((x * (0.15 * x + 0.05) + 0.004) / (x * (0.15 * x + 0.5) + 0.06)) - 0.0667;
}

vec3 aces(vec3 x) {
    mat3 input_ = mat3(0.59719, 0.07600, 0.02840, 0.35458, 0.90834, 0.13383, 0.04823, 0.01566, 0.83777);
    mat3 output_ = mat3(1.60475, -0.10208, -0.00327, -0.53108, 1.10813, -0.07276, -0.07367, -0.00605, 1.07602);
    x = input_ * x;
    x = (x * (x + 0.0245786) - 0.000090537) / (x * (0.983729 * x + 0.4329510) + 0.238081);
    return clamp(output_ * x, 0.0, 1.0);
}

vec3 agx(vec3 x) {
    x = clamp((log2(max(x, 1e-6)) + 12.47393) / 16.5, 0.0, 1.0);
    vec3 x2 = x * x;
    vec3 x4 = x2 * x2;
    return 15.5 * x4 * x2 - 40.14 * x4 * x + 31.96 * x4 - 6.868 * x2 * x + 0.4298 * x2 + 0.1191 * x - 0.00232;
}

vec3 pq(vec3 x) {
    vec3 y = pow(clamp(x / 100.0, 0.0, 1.0), vec3(0.1593017578));
    return pow((0.8359375 + 18.8515625 * y) / (1.0 + 18.6875 * y), vec3(78.84375));
}

void main() {
    vec3 c = (texture(scene, inUv).rgb + texture(bloom, inUv).rgb * 0.05) * exposure;
    if (OPERATOR == 0) c = c / (1.0 + c);
    else if (OPERATOR == 1) c = filmic(c * 2.0) / filmic(vec3(11.2));
    else if (OPERATOR == 2) c = aces(c);
    else if (OPERATOR == 3) c = agx(c);
    else c = pq(c);
    if (GRADE) c = texture(gradeTable, c * 0.96875 + 0.015625).rgb;
    if (GRAIN) c += (fract(sin(dot(gl_FragCoord.xy, vec2(12.9898, 78.233))) * 43758.5453) - 0.5) / 128.0;
    outColour = vec4(c, dot(c, vec3(0.299, 0.587, 0.114)));
}
