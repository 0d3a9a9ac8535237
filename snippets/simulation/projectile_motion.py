"""Simulate a thrown ball in small time steps (Euler's method) and compare with the exact range.

Projectile motion with gravity and without air: height and distance of a throw.

If I throw a ball at 20 m/s and 45 degrees, how far does it fly?
How high does a kicked football rise before coming down?
How do I calculate a trajectory in tiny time steps under gravity?
At which distance would a stone launched from a catapult land without air resistance?
Ballistic throw range height simulation euler?
"""

import math

speed, angle, gravity, step = 20.0, math.radians(45), 9.81, 0.0001

x, y = 0.0, 0.0
vx, vy = speed * math.cos(angle), speed * math.sin(angle)
highest = 0.0
while y >= 0:
    x += vx * step
    y += vy * step
    vy -= gravity * step
    highest = max(highest, y)

print(f"Simulated distance: {x:.1f} m, exact: {speed**2 * math.sin(2 * angle) / gravity:.1f} m")
print(f"Simulated height: {highest:.1f} m, exact: {(speed * math.sin(angle)) ** 2 / (2 * gravity):.1f} m")
