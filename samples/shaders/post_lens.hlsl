// Chromatic aberration, vignette and distortion; compiled with glslangValidator -D -S frag -e main.
struct Input {
    [[vk::location(0)]] float2 uv : TEXCOORD0;
};

[[vk::binding(0, 0)]] Texture2D<float4> scene : register(t0);
[[vk::binding(1, 0)]] SamplerState linearClamp : register(s1);
[[vk::binding(2, 0)]] cbuffer Lens : register(b2) {
    float4 distortion;
    float4 vignette;
};

float2 distort(float2 uv, float amount) {
    float2 d = uv - 0.5;
    float r2 = dot(d, d);
    return 0.5 + d * (1.0 + amount * r2 * (1.0 + amount * 0.5 * r2));
}

float4 main(Input input) : SV_Target0 {
    float3 colour = float3(0.0, 0.0, 0.0);
    float3 weight = float3(0.0, 0.0, 0.0);
    [unroll] for (int i = 0; i < 8; i++) {
        float t = (float)i / 7.0;
        float3 w = saturate(float3(1.0 - t * 2.0, 1.0 - abs(t * 2.0 - 1.0), t * 2.0 - 1.0));
        colour += scene.SampleLevel(linearClamp, distort(input.uv, lerp(distortion.x, distortion.y, t)), 0.0).rgb * w;
        weight += w;
    }
    float2 d = (input.uv - 0.5) * vignette.xy;
    return float4(colour / weight * smoothstep(vignette.z, vignette.w, dot(d, d)), 1.0);
}
