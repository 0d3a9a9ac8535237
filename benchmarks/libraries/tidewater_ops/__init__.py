"""Rules of Tidewater Harbour: berths, tides, cargo and pilotage.

The rules live in four modules: ``berths`` (vessels, berths and what mooring costs), ``tides``
(heights and windows of water), ``cargo`` (stowage and laytime) and ``pilots`` (pilots and tugs).
"""
