#version 460
#extension GL_GOOGLE_include_directive : require
#include "include/object.glsl"
layout(constant_id = 0) const bool NORMAL_MAP = true;
layout(constant_id = 1) const bool ALPHA_TEST = false;
layout(constant_id = 2) const bool DITHER_LOD = false;
layout(location = 0) in vec3 inWorld;
layout(location = 1) in vec3 inNormal;
layout(location = 2) in vec4 inTangent;
layout(location = 3) in vec2 inUv;
layout(location = 4) in vec4 inColour;
layout(set = 1, binding = 1) uniform sampler2D albedoMap;
layout(set = 1, binding = 2) uniform sampler2D normalMap;
layout(set = 1, binding = 3) uniform sampler2D ormMap;
layout(location = 0) out vec4 outAlbedo;
layout(location = 1) out vec2 outNormal;
layout(location = 2) out vec4 outMaterial;
layout(location = 3) out uint outObject;

vec2 octahedral(vec3 n) {
    n /= abs(n.x) + abs(n.y) + abs(n.z);
    vec2 s = vec2(n.x >= 0.0 ? 1.0 : -1.0, n.y >= 0.0 ? 1.0 : -1.0);
    return n.z >= 0.0 ? n.xy : (1.0 - abs(n.yx)) * s;
}

void main() {
    vec4 base = texture(albedoMap, inUv) * inColour;
    if (ALPHA_TEST && base.a < object.alphaCutoff) discard;
    if (DITHER_LOD) {
        float d = fract(52.9829189 * fract(dot(gl_FragCoord.xy, vec2(0.06711056, 0.00583715))));
        if (d < object.lodFade) discard;
    }
    vec3 n = normalize(inNormal);
    if (NORMAL_MAP) {
        vec3 m = texture(normalMap, inUv).xyz * 2.0 - 1.0;
        vec3 t = normalize(inTangent.xyz);
        n = normalize(m.x * t + m.y * cross(n, t) * inTangent.w + m.z * n);
    }
    outAlbedo = base;
    outNormal = octahedral(n);
    outMaterial = texture(ormMap, inUv);
    outObject = object.materialIndex;
}
