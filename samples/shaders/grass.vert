#version 460
layout(location = 0) in vec3 inPosition;
layout(location = 1) in float inHeight;
layout(location = 0) out float outHeight;

void main() {
    outHeight = inHeight;
    gl_Position = vec4(inPosition, 1.0);
}
