#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/noise.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const int LIFETIME = 30;
layout(set = 0, binding = 0, std430) buffer Heights { float heights[]; };
layout(push_constant) uniform Push { uint width; uint seed; float inertia; float capacity; } push;

float heightAt(vec2 p) {
    uvec2 c = uvec2(clamp(p, vec2(0.0), vec2(float(push.width) - 2.0)));
    vec2 f = fract(p);
    uint i = c.y * push.width + c.x;
    return mix(mix(heights[i], heights[i + 1u], f.x), mix(heights[i + push.width], heights[i + push.width + 1u], f.x), f.y);
}

void main() {
    uint r = hashPcg(gl_GlobalInvocationID.x ^ push.seed);
    vec2 p = vec2(hashFloat(r), hashFloat(r + 1u)) * float(push.width - 2u);
    vec2 d = vec2(0.0);
    float sediment = 0.0, speed = 1.0, water = 1.0;
    for (int i = 0; i < LIFETIME; i++) {
        float h = heightAt(p);
        vec2 g = vec2(heightAt(p + vec2(1, 0)) - h, heightAt(p + vec2(0, 1)) - h);
        d = normalize(d * push.inertia - g * (1.0 - push.inertia) + 1e-5);
        vec2 next = p + d;
        if (any(lessThan(next, vec2(0.0))) || any(greaterThan(next, vec2(float(push.width - 2u))))) break;
        float drop = heightAt(next) - h;
        float limit = max(-drop, 0.01) * speed * water * push.capacity;
        float change = sediment > limit || drop > 0.0 ? (drop > 0.0 ? min(drop, sediment) : (sediment - limit) * 0.3) : -min((limit - sediment) * 0.3, -drop);
        uvec2 c = uvec2(p);
        heights[c.y * push.width + c.x] += change;
        sediment -= change;
        speed = sqrt(max(speed * speed - drop * 4.0, 0.0));
        water *= 0.99;
        p = next;
    }
}
