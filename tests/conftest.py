"""Settings for every test.

`HYPOTHESIS_PROFILE` picks how hard properties are tried: `dev` (default), `ci` (the same examples every time), `quick`.
"""

import os

from hypothesis import settings

settings.register_profile("dev", max_examples=200, deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=25)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
