#version 460
#extension GL_EXT_ray_tracing : require
layout(location = 0) rayPayloadInEXT vec4 color;
hitAttributeEXT vec2 barycentrics;
void main() { color = vec4(1.0 - barycentrics.x - barycentrics.y, barycentrics, 1.0); }
