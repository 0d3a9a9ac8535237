"""Put tasks in an order that respects their dependencies (topological sort), and notice cycles.

I must shop before washing and wash before cooking; in what order should I do it all?
How do I schedule jobs when some can only start after others are finished?
Which university courses should come first when each has prerequisites?
How can I detect that two build steps wait for each other in a circle?
Dependency order of tasks graphlib circular dependency?
"""

from graphlib import CycleError, TopologicalSorter

needs = {"serve": {"cook"}, "cook": {"wash", "shop"}, "wash": {"shop"}}

print("Order:", list(TopologicalSorter(needs).static_order()))
try:
    list(TopologicalSorter({"egg": {"hen"}, "hen": {"egg"}}).static_order())
except CycleError:
    print("Egg and hen need each other, so there is no order")
