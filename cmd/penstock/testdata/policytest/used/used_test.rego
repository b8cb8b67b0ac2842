package used_test

import data.used
import data.used_helpers

test_no if count(used_helpers.found("no")) == 1

test_yes if used.violation == set() with input as {"object": used_helpers.pod("yes")}
