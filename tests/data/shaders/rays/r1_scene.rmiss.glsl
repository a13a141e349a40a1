#version 460
#extension GL_EXT_ray_tracing : require
layout(location = 0) rayPayloadInEXT vec4 color;
void main() { color = vec4(0.1, 0.2, 0.3, 1.0) * (gl_WorldRayDirectionEXT.y * 0.5 + 0.5); }
