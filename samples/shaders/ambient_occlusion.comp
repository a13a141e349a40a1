#version 460
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const int SLICES = 3;
layout(constant_id = 1) const int STEPS = 4;
layout(set = 0, binding = 0) uniform sampler2D depth;
layout(set = 0, binding = 1) uniform sampler2D normals;
layout(set = 0, binding = 2, r8) uniform writeonly image2D result;
layout(push_constant) uniform Push { vec4 projection; vec2 texel; float radius; uint frameIndex; } push;

vec3 viewPosition(vec2 uv) {
    float z = push.projection.w / (textureLod(depth, uv, 0.0).r + push.projection.z);
    return vec3((uv * 2.0 - 1.0) * push.projection.xy * z, z);
}

void main() {
    vec2 uv = (vec2(gl_GlobalInvocationID.xy) + 0.5) * push.texel;
    vec3 p = viewPosition(uv);
    vec3 n = normalize(textureLod(normals, uv, 0.0).xyz * 2.0 - 1.0);
    vec3 v = normalize(-p);
    float noise = fract(52.9829189 * fract(dot(vec2(gl_GlobalInvocationID.xy) + float(push.frameIndex % 64u) * 5.588238, vec2(0.06711056, 0.00583715))));
    float visibility = 0.0;
    for (int s = 0; s < SLICES; s++) {
        float phi = (float(s) + noise) * 3.14159265 / float(SLICES);
        vec2 d = vec2(cos(phi), sin(phi));
        vec3 axis = normalize(cross(vec3(d, 0.0), v));
        vec3 projected = n - axis * dot(n, axis);
        float len = length(projected);
        float gamma = sign(dot(cross(v, projected), axis)) * acos(clamp(dot(projected, v) / max(len, 1e-4), -1.0, 1.0));
        vec2 horizon = vec2(-1.0);
        for (int i = 1; i <= STEPS; i++) {
            vec2 o = d * (float(i) / float(STEPS)) * push.radius / p.z;
            vec3 a = viewPosition(uv + o) - p;
            vec3 b = viewPosition(uv - o) - p;
            horizon.x = max(horizon.x, dot(normalize(a), v) - dot(a, a) * 0.01);
            horizon.y = max(horizon.y, dot(normalize(b), v) - dot(b, b) * 0.01);
        }
        vec2 h = vec2(-acos(clamp(horizon.y, -1.0, 1.0)), acos(clamp(horizon.x, -1.0, 1.0)));
        h = gamma + clamp(h - gamma, -1.5707963, 1.5707963);
        visibility += len * dot(vec2(0.25), cos(gamma) + 2.0 * h * sin(gamma) - cos(2.0 * h - gamma));
    }
    imageStore(result, ivec2(gl_GlobalInvocationID.xy), vec4(visibility / float(SLICES)));
}
