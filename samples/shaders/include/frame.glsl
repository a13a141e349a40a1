// Per-frame constants that every graphics shader of the samples reads.
layout(set = 0, binding = 0, std140) uniform Frame {
    mat4 view;
    mat4 projection;
    mat4 viewProjection;
    mat4 previousViewProjection;
    mat4 inverseViewProjection;
    vec4 cameraPosition;
    vec4 viewport;
    vec4 jitter;
    float time;
    float deltaTime;
    uint frameIndex;
    uint lightCount;
} frame;

vec3 worldFromDepth(vec2 uv, float depth) {
    vec4 p = frame.inverseViewProjection * vec4(uv * 2.0 - 1.0, depth, 1.0);
    return p.xyz / p.w;
}

float linearDepth(float depth) {
    return frame.projection[3][2] / (depth + frame.projection[2][2]);
}
