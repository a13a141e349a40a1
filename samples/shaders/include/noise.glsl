uint hashPcg(uint v) {
    uint s = v * 747796405u + 2891336453u;
    uint w = ((s >> ((s >> 28u) + 4u)) ^ s) * 277803737u;
    return (w >> 22u) ^ w;
}

float hashFloat(uint v) {
    return float(hashPcg(v) >> 8) * (1.0 / 16777216.0);
}

float gradientDot(ivec3 cell, vec3 p) {
    uint h = hashPcg(uint(cell.x) + hashPcg(uint(cell.y) + hashPcg(uint(cell.z))));
    vec3 g = vec3(h & 255u, (h >> 8) & 255u, (h >> 16) & 255u) / 127.5 - 1.0;
    return dot(g, p - vec3(cell));
}

float perlin(vec3 p) {
    ivec3 i = ivec3(floor(p));
    vec3 f = fract(p);
    vec3 u = f * f * f * (f * (f * 6.0 - 15.0) + 10.0);
    float x00 = mix(gradientDot(i, p), gradientDot(i + ivec3(1, 0, 0), p), u.x);
    float x10 = mix(gradientDot(i + ivec3(0, 1, 0), p), gradientDot(i + ivec3(1, 1, 0), p), u.x);
    float x01 = mix(gradientDot(i + ivec3(0, 0, 1), p), gradientDot(i + ivec3(1, 0, 1), p), u.x);
    float x11 = mix(gradientDot(i + ivec3(0, 1, 1), p), gradientDot(i + ivec3(1, 1, 1), p), u.x);
    return mix(mix(x00, x10, u.y), mix(x01, x11, u.y), u.z);
}
