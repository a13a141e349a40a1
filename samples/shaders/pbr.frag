#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/frame.glsl"
#include "include/object.glsl"
#include "include/brdf.glsl"
#include "include/lights.glsl"

// One über-shader; materials are permutations of these.
layout(constant_id = 0) const int SHADING_MODEL = 0; // 0 standard, 1 cloth, 2 clear coat, 3 subsurface, 4 anisotropic
layout(constant_id = 1) const bool NORMAL_MAP = true;
layout(constant_id = 2) const bool ALPHA_TEST = false;
layout(constant_id = 3) const bool EMISSIVE = false;
layout(constant_id = 4) const int SHADOW_TAPS = 1;
layout(constant_id = 5) const bool CLUSTERED = false;
layout(constant_id = 6) const int FIXED_LIGHTS = 4;
layout(constant_id = 7) const bool PARALLAX = false;
layout(constant_id = 8) const bool DETAIL_MAP = false;
layout(constant_id = 9) const bool FOG = false;

layout(location = 0) in vec3 inWorld;
layout(location = 1) in vec3 inNormal;
layout(location = 2) in vec4 inTangent;
layout(location = 3) in vec2 inUv;
layout(location = 4) in vec4 inColour;

layout(set = 1, binding = 0, std140) uniform Material {
    vec4 baseColour;
    vec4 emissive;
    vec4 sheen;
    float metallic;
    float roughness;
    float clearCoat;
    float anisotropy;
} material;
layout(set = 1, binding = 1) uniform sampler2D albedoMap;
layout(set = 1, binding = 2) uniform sampler2D normalMap;
layout(set = 1, binding = 3) uniform sampler2D ormMap;
layout(set = 1, binding = 4) uniform sampler2D emissiveMap;
layout(set = 1, binding = 5) uniform sampler2D detailMap;

layout(location = 0) out vec4 outColour;

vec2 parallax(vec2 uv, vec3 viewTangent) {
    const int steps = 16;
    vec2 delta = viewTangent.xy / max(viewTangent.z, 0.1) * 0.05 / float(steps);
    float layer = 0.0;
    float height = textureLod(detailMap, uv, 0.0).a;
    for (int i = 0; i < steps && layer < height; i++) {
        uv -= delta;
        height = textureLod(detailMap, uv, 0.0).a;
        layer += 1.0 / float(steps);
    }
    return uv;
}

vec3 shade(vec3 n, vec3 t, vec3 v, vec3 l, vec3 albedo, float metallic, float roughness) {
    vec3 h = normalize(v + l);
    float nDotL = clamp(dot(n, l), 0.0, 1.0);
    float nDotV = clamp(abs(dot(n, v)), 1e-3, 1.0);
    float nDotH = clamp(dot(n, h), 0.0, 1.0);
    float vDotH = clamp(dot(v, h), 0.0, 1.0);
    vec3 f0 = mix(vec3(0.04), albedo, metallic);
    vec3 f = fresnelSchlick(vDotH, f0);
    vec3 diffuse = albedo * (1.0 - metallic) * diffuseBurley(nDotV, nDotL, vDotH, roughness);
    if (SHADING_MODEL == 1) {
        float d = distributionCharlie(nDotH, roughness);
        return (diffuse + material.sheen.rgb * d / (4.0 * (nDotL + nDotV - nDotL * nDotV))) * nDotL;
    }
    if (SHADING_MODEL == 4) {
        vec3 b = cross(n, t);
        float at = max(roughness * (1.0 + material.anisotropy), 0.01);
        float ab = max(roughness * (1.0 - material.anisotropy), 0.01);
        vec3 d = vec3(ab * dot(t, h), at * dot(b, h), at * ab * nDotH);
        float d2 = dot(d, d);
        float w = at * ab / d2;
        return (diffuse * (1.0 - f) + f * at * ab * w * w / PI * visibilitySmith(nDotV, nDotL, roughness)) * nDotL;
    }
    vec3 specular = f * distributionGGX(nDotH, roughness) * visibilitySmith(nDotV, nDotL, roughness);
    vec3 result = (diffuse * (1.0 - f) + specular) * nDotL;
    if (SHADING_MODEL == 2) {
        float fc = fresnelSchlick(vDotH, vec3(0.04)).x * material.clearCoat;
        result = result * (1.0 - fc) + fc * distributionGGX(nDotH, 0.1) * visibilitySmith(nDotV, nDotL, 0.1) * nDotL;
    }
    if (SHADING_MODEL == 3) {
        float wrap = clamp((dot(n, l) + 0.5) / 2.25, 0.0, 1.0);
        float back = pow(clamp(dot(v, -normalize(l + n * 0.3)), 0.0, 1.0), 4.0);
        result += albedo * material.sheen.rgb * (wrap - nDotL * 0.5 + back) * 0.5;
    }
    return result;
}

vec3 pointLight(uint i, vec3 n, vec3 t, vec3 v, vec3 albedo, float metallic, float roughness) {
    Light light = lights[i];
    vec3 d = light.positionRadius.xyz - inWorld;
    float dist2 = max(dot(d, d), 1e-4);
    float window = clamp(1.0 - pow(dist2 / (light.positionRadius.w * light.positionRadius.w), 2.0), 0.0, 1.0);
    vec3 l = d * inversesqrt(dist2);
    float cone = smoothstep(light.directionCone.w, light.directionCone.w + 0.1, dot(-l, light.directionCone.xyz));
    return shade(n, t, v, l, albedo, metallic, roughness) * light.colourIntensity.rgb * light.colourIntensity.a * window * window * cone / dist2;
}

void main() {
    vec3 n = normalize(inNormal);
    vec3 t = normalize(inTangent.xyz - n * dot(inTangent.xyz, n));
    vec3 b = cross(n, t) * inTangent.w;
    vec3 v = normalize(frame.cameraPosition.xyz - inWorld);
    vec2 uv = inUv;
    if (PARALLAX) uv = parallax(uv, vec3(dot(v, t), dot(v, b), dot(v, n)));
    vec4 base = texture(albedoMap, uv) * material.baseColour * inColour;
    if (ALPHA_TEST && base.a < object.alphaCutoff) discard;
    if (DETAIL_MAP) base.rgb *= texture(detailMap, uv * 8.0).rgb * 2.0;
    if (NORMAL_MAP) {
        vec3 m = texture(normalMap, uv).xyz * 2.0 - 1.0;
        n = normalize(m.x * t + m.y * b + m.z * n);
    }
    vec3 orm = texture(ormMap, uv).rgb;
    float roughness = clamp(orm.g * material.roughness, 0.04, 1.0);
    float metallic = orm.b * material.metallic;
    float viewDepth = dot(inWorld - frame.cameraPosition.xyz, -vec3(frame.view[0][2], frame.view[1][2], frame.view[2][2]));

    vec3 sun = normalize(vec3(0.3, 0.9, 0.2));
    vec3 colour = shade(n, t, v, sun, base.rgb, metallic, roughness) * 3.0;
    if (SHADOW_TAPS > 0) colour *= shadowFactor(inWorld, viewDepth, SHADOW_TAPS);
    if (CLUSTERED) {
        uvec3 cell = uvec3(gl_FragCoord.xy / 64.0, uint(log2(max(viewDepth, 1.0)) * 3.0));
        uint base0 = ((cell.z * 18u + cell.y) * 32u + cell.x) * 4u;
        for (uint w = 0; w < 4u; w++) {
            uint bits = clusterWords[base0 + w];
            while (bits != 0u) {
                uint i = findLSB(bits);
                bits &= bits - 1u;
                colour += pointLight(w * 32u + i, n, t, v, base.rgb, metallic, roughness);
            }
        }
    } else {
        for (int i = 0; i < FIXED_LIGHTS; i++) colour += pointLight(uint(i), n, t, v, base.rgb, metallic, roughness);
    }
    vec3 r = reflect(-v, n);
    vec2 ab = texture(brdfTable, vec2(clamp(dot(n, v), 0.0, 1.0), roughness)).rg;
    vec3 f0 = mix(vec3(0.04), base.rgb, metallic);
    colour += textureLod(environmentMap, r, roughness * 7.0).rgb * (f0 * ab.x + ab.y) * orm.r;
    colour += textureLod(environmentMap, n, 7.0).rgb * base.rgb * (1.0 - metallic) * orm.r;
    if (EMISSIVE) colour += texture(emissiveMap, uv).rgb * material.emissive.rgb;
    if (FOG) colour = mix(vec3(0.5, 0.6, 0.7), colour, exp(-viewDepth * 0.01));
    outColour = vec4(colour, base.a);
}
