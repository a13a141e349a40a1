const float PI = 3.14159265358979;

float distributionGGX(float nDotH, float roughness) {
    float a = roughness * roughness;
    float a2 = a * a;
    float d = nDotH * nDotH * (a2 - 1.0) + 1.0;
    return a2 / max(PI * d * d, 1e-6);
}

float visibilitySmith(float nDotV, float nDotL, float roughness) {
    float a = roughness * roughness;
    float v = nDotL * sqrt(nDotV * nDotV * (1.0 - a) + a);
    float l = nDotV * sqrt(nDotL * nDotL * (1.0 - a) + a);
    return 0.5 / max(v + l, 1e-5);
}

vec3 fresnelSchlick(float cosTheta, vec3 f0) {
    return f0 + (1.0 - f0) * pow(clamp(1.0 - cosTheta, 0.0, 1.0), 5.0);
}

float distributionCharlie(float nDotH, float roughness) {
    float inverse = 1.0 / max(roughness, 0.05);
    float sin2 = max(1.0 - nDotH * nDotH, 0.0078125);
    return (2.0 + inverse) * pow(sin2, inverse * 0.5) / (2.0 * PI);
}

float diffuseBurley(float nDotV, float nDotL, float lDotH, float roughness) {
    float f90 = 0.5 + 2.0 * lDotH * lDotH * roughness;
    float l = 1.0 + (f90 - 1.0) * pow(1.0 - nDotL, 5.0);
    float v = 1.0 + (f90 - 1.0) * pow(1.0 - nDotV, 5.0);
    return l * v / PI;
}
