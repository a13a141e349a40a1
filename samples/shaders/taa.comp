#version 460
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const bool VARIANCE_CLIP = true;
layout(constant_id = 1) const bool CATMULL_ROM = true;
layout(constant_id = 2) const bool UPSCALE = false;
layout(set = 0, binding = 0) uniform sampler2D current;
layout(set = 0, binding = 1) uniform sampler2D history;
layout(set = 0, binding = 2) uniform sampler2D velocity;
layout(set = 0, binding = 3) uniform sampler2D depth;
layout(set = 0, binding = 4, rgba16f) uniform writeonly image2D result;
layout(push_constant) uniform Push { vec2 texel; vec2 jitter; float blend; float scale; } push;

vec3 toYCoCg(vec3 c) {
    return vec3(dot(c, vec3(0.25, 0.5, 0.25)), dot(c, vec3(0.5, 0.0, -0.5)), dot(c, vec3(-0.25, 0.5, -0.25)));
}

vec3 fromYCoCg(vec3 c) {
    return vec3(c.x + c.y - c.z, c.x + c.z, c.x - c.y - c.z);
}

vec3 sampleHistory(vec2 uv) {
    if (!CATMULL_ROM) return textureLod(history, uv, 0.0).rgb;
    vec2 p = uv / push.texel;
    vec2 c = floor(p - 0.5) + 0.5;
    vec2 f = p - c;
    vec2 w0 = f * (-0.5 + f * (1.0 - 0.5 * f));
    vec2 w1 = 1.0 + f * f * (-2.5 + 1.5 * f);
    vec2 w2 = f * (0.5 + f * (2.0 - 1.5 * f));
    vec2 w3 = f * f * (-0.5 + 0.5 * f);
    vec2 w12 = w1 + w2;
    vec2 p0 = (c - 1.0) * push.texel, p3 = (c + 2.0) * push.texel, p12 = (c + w2 / w12) * push.texel;
    vec3 sum = textureLod(history, vec2(p12.x, p0.y), 0.0).rgb * w12.x * w0.y;
    sum += textureLod(history, vec2(p0.x, p12.y), 0.0).rgb * w0.x * w12.y;
    sum += textureLod(history, p12, 0.0).rgb * w12.x * w12.y;
    sum += textureLod(history, vec2(p3.x, p12.y), 0.0).rgb * w3.x * w12.y;
    sum += textureLod(history, vec2(p12.x, p3.y), 0.0).rgb * w12.x * w3.y;
    return max(sum / (w12.x * w0.y + w0.x * w12.y + w12.x * w12.y + w3.x * w12.y + w12.x * w3.y), 0.0);
}

void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    vec2 uv = (vec2(at) + 0.5) * push.texel;
    vec2 best = vec2(0.0);
    float nearest = 1.0;
    vec3 mean = vec3(0.0), square = vec3(0.0), low = vec3(1e9), high = vec3(-1e9), centre = vec3(0.0);
    float total = 0.0;
    for (int y = -1; y <= 1; y++) for (int x = -1; x <= 1; x++) {
        vec2 o = uv + vec2(x, y) * push.texel * push.scale;
        vec3 c = toYCoCg(textureLod(current, o - push.jitter, 0.0).rgb);
        float z = textureLod(depth, o, 0.0).r;
        if (z < nearest) { nearest = z; best = vec2(x, y); }
        float w = UPSCALE ? exp(-dot(vec2(x, y) - push.jitter, vec2(x, y) - push.jitter) * 2.0) : float(x == 0 && y == 0);
        centre += c * w;
        total += w;
        mean += c;
        square += c * c;
        low = min(low, c);
        high = max(high, c);
    }
    centre /= max(total, 1e-4);
    vec2 v = textureLod(velocity, uv + best * push.texel, 0.0).rg;
    vec3 old = toYCoCg(sampleHistory(uv - v));
    if (VARIANCE_CLIP) {
        mean /= 9.0;
        vec3 sigma = sqrt(max(square / 9.0 - mean * mean, 0.0)) * 1.25;
        vec3 d = old - mean;
        vec3 unit = abs(d / max(sigma, 1e-4));
        float m = max(unit.x, max(unit.y, unit.z));
        old = m > 1.0 ? mean + d / m : old;
    } else {
        old = clamp(old, low, high);
    }
    bool outside = any(lessThan(uv - v, vec2(0.0))) || any(greaterThan(uv - v, vec2(1.0)));
    float wc = 1.0 / (1.0 + centre.x), wo = 1.0 / (1.0 + old.x);
    float blend = outside ? 1.0 : push.blend;
    imageStore(result, at, vec4(fromYCoCg((centre * wc * blend + old * wo * (1.0 - blend)) / (wc * blend + wo * (1.0 - blend))), 1.0));
}
