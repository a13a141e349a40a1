struct Light {
    vec4 positionRadius;
    vec4 colourIntensity;
    vec4 directionCone;
};

layout(set = 0, binding = 1, std430) readonly buffer Lights { Light lights[]; };
layout(set = 0, binding = 2) uniform sampler2DArrayShadow shadowMap;
layout(set = 0, binding = 3) uniform samplerCube environmentMap;
layout(set = 0, binding = 4) uniform sampler2D brdfTable;
layout(set = 0, binding = 5, std430) readonly buffer Clusters {
    mat4 cascades[4];
    uint clusterWords[];
};

float shadowFactor(vec3 world, float viewDepth, int taps) {
    int cascade = viewDepth < 8.0 ? 0 : viewDepth < 24.0 ? 1 : viewDepth < 72.0 ? 2 : 3;
    vec4 p = cascades[cascade] * vec4(world, 1.0);
    vec3 uvz = vec3(p.xy * 0.5 + 0.5, p.z) / p.w;
    if (taps <= 1) return texture(shadowMap, vec4(uvz.xy, cascade, uvz.z));
    float sum = 0.0;
    for (int i = 0; i < taps; i++) {
        float r = sqrt((float(i) + 0.5) / float(taps));
        float a = float(i) * 2.399963;
        sum += texture(shadowMap, vec4(uvz.xy + vec2(cos(a), sin(a)) * r * 0.002, cascade, uvz.z));
    }
    return sum / float(taps);
}
