package stray_test

import data.plane

test_nothing if plane.violation
