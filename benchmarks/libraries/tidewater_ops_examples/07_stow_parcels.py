# Where do we stow three parcels, and how much volume is left in the fore hold?
from tidewater_ops.cargo import Hazard, Hold, Parcel, plan_stow

parcels = [Parcel("A1", 120), Parcel("A2", 340, 1.1), Parcel("A3", 60, hazard=Hazard.VOLATILE)]
holds = [Hold("fore", 500, 450), Hold("aft", 600, 500, vented=True)]
plan = plan_stow(parcels, holds)
print(plan.placed)
print(plan.spare_m3["fore"])
