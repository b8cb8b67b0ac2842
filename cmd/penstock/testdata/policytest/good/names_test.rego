package names_are_free

# A test may be in the policy's own package.
test_reads_the_inventory if {
	violation with input as {"object": {"metadata": {"name": "a"}}, "namespace": {"name": "team"}}
		with data.inventory as {"namespace": {"other": {"v1": {"Pod": {"a": {}}}}}}
}
