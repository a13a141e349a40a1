// Per-draw constants, pushed.
layout(push_constant) uniform Object {
    mat4 model;
    uint materialIndex;
    uint instanceBase;
    float alphaCutoff;
    float lodFade;
} object;
