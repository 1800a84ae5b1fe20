"""The main job: the three examples, one after the other."""

import black_scholes
import heat
import image_pipeline

image_pipeline.main()
black_scholes.main()
heat.main()
