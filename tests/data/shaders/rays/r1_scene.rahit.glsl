#version 460
#extension GL_EXT_ray_tracing : require
hitAttributeEXT vec2 barycentrics;
void main() { if (fract(barycentrics.x * 8.0) < 0.1) ignoreIntersectionEXT; }
