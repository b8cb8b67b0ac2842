package plain_test

import data.plain

test_no if plain.violation with input as {"object": {"metadata": {"name": "no"}}}
