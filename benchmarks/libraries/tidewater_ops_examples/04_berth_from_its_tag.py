# Can the Skylark moor at the berth with the tag Q11/160/081?
from tidewater_ops.berths import Vessel, fits, read_tag

skylark = Vessel("Skylark", 124.0, 18.5, 6.8)
clearance = fits(skylark, read_tag("Q11/160/081"))
print(clearance.ok, clearance.under_keel_m)
