// Temporal accumulation of a noisy signal; compiled with glslangValidator -D -S comp -e main.
[[vk::binding(0, 0)]] Texture2D<float4> noisy : register(t0);
[[vk::binding(1, 0)]] Texture2D<float4> history : register(t1);
[[vk::binding(2, 0)]] Texture2D<float2> motion : register(t2);
[[vk::binding(3, 0)]] Texture2D<float4> moments : register(t3);
[[vk::binding(4, 0)]] SamplerState linearClamp : register(s4);
[[vk::binding(5, 0)]] RWTexture2D<float4> result : register(u5);
[[vk::binding(6, 0)]] RWTexture2D<float4> momentsOut : register(u6);
[[vk::binding(7, 0)]] cbuffer Settings : register(b7) {
    float2 texel;
    float minimumBlend;
    float maximumLength;
};

[numthreads(8, 8, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    float2 uv = ((float2)id.xy + 0.5) * texel;
    float2 before = uv - motion.SampleLevel(linearClamp, uv, 0.0);
    float4 now = noisy.Load(int3(id.xy, 0));
    float4 old = history.SampleLevel(linearClamp, before, 0.0);
    float4 m = moments.SampleLevel(linearClamp, before, 0.0);
    bool valid = all(before > 0.0) && all(before < 1.0);
    float length = valid ? min(m.z + 1.0, maximumLength) : 1.0;
    float blend = max(1.0 / length, minimumBlend);
    float luma = dot(now.rgb, float3(0.2126, 0.7152, 0.0722));
    float2 mean = lerp(m.xy, float2(luma, luma * luma), blend);
    result[id.xy] = float4(lerp(old.rgb, now.rgb, blend), max(mean.y - mean.x * mean.x, 0.0));
    momentsOut[id.xy] = float4(mean, length, 0.0);
}
