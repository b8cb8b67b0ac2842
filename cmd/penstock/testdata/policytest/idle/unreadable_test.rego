package other_test

import data.idle

test_no if {
	idle.violation ==
}
