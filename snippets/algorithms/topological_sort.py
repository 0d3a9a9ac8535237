"""Put tasks in an order that respects their dependencies (topological sort), and notice cycles."""

from graphlib import CycleError, TopologicalSorter

needs = {"serve": {"cook"}, "cook": {"wash", "shop"}, "wash": {"shop"}}

print("Order:", list(TopologicalSorter(needs).static_order()))
try:
    list(TopologicalSorter({"egg": {"hen"}, "hen": {"egg"}}).static_order())
except CycleError:
    print("Egg and hen need each other, so there is no order")
