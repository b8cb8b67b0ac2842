package short_names_test

import data.short_names

test_passes if count(short_names.violation) == 0 with input as {"object": {"metadata": {"name": "short"}}}

test_fails if {
	found := short_names.violation with input as {"object": {"metadata": {"name": "a-long-name"}}}
	print("found", found)
	count(found) == 0
}

test_lengths[name] if {
	some name in {"a", "abcdefghi"}
	found := short_names.violation with input as {"object": {"metadata": {"name": name}}}
	count(found) == 0
}

test_fails if 1 == 2
