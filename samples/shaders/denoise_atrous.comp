#version 460
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const int STEP = 1;
layout(constant_id = 1) const int RADIUS = 2;
layout(set = 0, binding = 0) uniform sampler2D signal;
layout(set = 0, binding = 1) uniform sampler2D normalDepth;
layout(set = 0, binding = 2, rgba16f) uniform writeonly image2D result;
layout(push_constant) uniform Push { float sigmaDepth; float sigmaNormal; float sigmaLuma; } push;

void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    vec4 c = texelFetch(signal, at, 0);
    vec4 nd = texelFetch(normalDepth, at, 0);
    float l = dot(c.rgb, vec3(0.2126, 0.7152, 0.0722));
    vec4 sum = vec4(c.rgb, c.a);
    float weight = 1.0;
    float weight2 = 1.0;
    for (int y = -RADIUS; y <= RADIUS; y++) for (int x = -RADIUS; x <= RADIUS; x++) {
        if (x == 0 && y == 0) continue;
        ivec2 o = at + ivec2(x, y) * STEP;
        vec4 s = texelFetch(signal, o, 0);
        vec4 n = texelFetch(normalDepth, o, 0);
        float w = exp(-abs(n.w - nd.w) / push.sigmaDepth - abs(dot(s.rgb, vec3(0.2126, 0.7152, 0.0722)) - l) / (push.sigmaLuma * sqrt(max(c.a, 0.0)) + 1e-4))
            * pow(max(dot(n.xyz, nd.xyz), 0.0), push.sigmaNormal) * exp2(-float(x * x + y * y) * 0.5);
        sum += vec4(s.rgb * w, s.a * w * w);
        weight += w;
        weight2 += w * w;
    }
    imageStore(result, at, vec4(sum.rgb / weight, sum.a / weight2));
}
