// Emission from a ring of emitters; compiled with glslangValidator -D -S comp -e main.
struct Particle {
    float4 positionAge;
    float4 velocitySize;
};

[[vk::binding(0, 0)]] cbuffer Emit : register(b0) {
    float4 origin;
    uint requested;
    uint seed;
    float speed;
    float spread;
};
[[vk::binding(1, 0)]] RWStructuredBuffer<Particle> particles : register(u1);
[[vk::binding(2, 0)]] RWStructuredBuffer<uint> dead : register(u2);

uint wang(uint s) {
    s = (s ^ 61u) ^ (s >> 16);
    s *= 9u;
    s = s ^ (s >> 4);
    s *= 0x27d4eb2du;
    return s ^ (s >> 15);
}

[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    if (id.x >= requested) return;
    uint slot = dead[id.x + 1];
    uint r = wang(id.x ^ seed);
    float a = (float)(r & 0xffffu) / 65535.0 * 6.2831853;
    float u = (float)(r >> 16) / 65535.0;
    Particle p;
    p.positionAge = float4(origin.xyz + float3(cos(a), 0.0, sin(a)) * spread * sqrt(u), 0.0);
    p.velocitySize = float4(cos(a) * speed * 0.2, speed * (0.5 + u), sin(a) * speed * 0.2, 0.1);
    particles[slot] = p;
}
