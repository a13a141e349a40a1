struct Payload {
    vec3 radiance;
    float distance;
    vec3 normal;
    uint seed;
};
