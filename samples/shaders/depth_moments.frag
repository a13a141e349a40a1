#version 460
layout(location = 0) in vec2 inUv;
layout(location = 0) out vec2 outMoments;

void main() {
    float d = gl_FragCoord.z;
    float dx = dFdx(d);
    float dy = dFdy(d);
    outMoments = vec2(d, d * d + 0.25 * (dx * dx + dy * dy));
}
