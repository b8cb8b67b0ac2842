package main

test_long if "has a long name" in deny with input as {"kind": "Pod", "metadata": {"name": "a-long-name"}}
